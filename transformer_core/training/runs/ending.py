"""The end of a sitting: the model as it is now, written as a bundle that every page can open.

Read next: card.py.
"""

from transformer_core.bundle import Bundle, save
from transformer_core.training.runs.card import write_card
from transformer_core.training.runs.folder import BUNDLE, SCRIPT, write_whole
from transformer_core.training.runs.preparation import Prepared
from transformer_core.training.runs.script import repeat_script
from transformer_core.training.runs.store import RunStore
from transformer_core.training.runs.writer import RunWriter


def write_bundle(store: RunStore, writer: RunWriter, prepared: Prepared, seconds: float) -> None:
    """Write the bundle with its card, and the script that repeats the run.

    Raises:
        RunError, OSError: it cannot be written.
    """
    run, task = prepared.run, prepared.task
    frame = writer.last_frame()
    if frame is None:
        return
    card = write_card(store.spec, prepared.facts, frame, last_step=run.step, seconds=seconds)
    bundle = Bundle(store.id, run.model.eval(), task.tokenizer, task.labels, card)
    save(bundle, store.folder / BUNDLE)
    write_whole(store.folder / SCRIPT, repeat_script(store.spec, prepared.facts))
