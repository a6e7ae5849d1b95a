"""The end of a session: the model as a bundle with a card, and the script that repeats the run."""

from typing import Any

from transformer_core.bundle import Bundle, save
from transformer_core.training.config import TrainConfig
from transformer_core.training.early_stopping import watch
from transformer_core.training.runs.exchange.script import COMMAND, repeat_script
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.folder import BUNDLE, SCRIPT, write_whole
from transformer_core.training.runs.store.records import Frame, evaluations
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.build_run import Prepared
from transformer_core.training.spec import RunSpec

WORDS = {
    "train_loss": "loss on a sample of the training part, nats",
    "held_out_loss": "loss on the held-out part, nats",
    "train_accuracy": "accuracy on a sample of the training part",
    "held_out_accuracy": "accuracy on the held-out part",
}
CARD_FACTS = ("kind", "n_parameters", "total_steps", "device", "device_name", "threads", "torch", "python")
CARD = """# {name}

Trained by Vitrine from {beginning}: a model of kind `{kind}` with {n_parameters:,} parameters on: {learned}.

## Measured

After step {step} of {total_steps} ({epoch:.2f} of {epochs} epochs), the last frame of the run; the weights beside this
card are those after step {last_step}.

{measures}
{baselines}{course}
Training took {seconds:.1f} s on {device_name} ({device}) with {threads} threads; torch {torch}, Python {python}.
{notes}
## Limits

It knows nothing but its data, which are few; on texts of another kind its answers mean little. A rule that counts words
stands above for comparison, where there is one.

## To repeat it

`{command}` with the script below prints the same curve to the last digit on the same machine with the same versions.

```python
{script}```
"""


def finish_run(store: RunStore, writer: RunWriter, prepared: Prepared, seconds: float) -> None:
    """Write the bundle with its card, and the script that repeats the run.

    Raises:
        RunError, OSError: it cannot be written.
    """
    run, task = prepared.run, prepared.task
    frames = writer.frames()
    if not frames:
        return
    card = _card(store.spec, prepared.facts, frames, last_step=run.step, seconds=seconds)
    bundle = Bundle(store.id, run.model.eval(), task.tokenizer, task.labels, card)
    save(bundle, store.folder / BUNDLE)
    write_whole(store.folder / SCRIPT, repeat_script(store.spec, prepared.facts))


def _card(spec: RunSpec, facts: dict[str, Any], frames: list[Frame], *, last_step: int, seconds: float) -> str:
    """Return the card: what is needed to judge and to repeat a run, as Markdown.

    Args:
        spec, facts: of the run.
        frames: all that were recorded.
        last_step: after which the weights were taken.
        seconds: of training.
    """
    frame = frames[-1]
    return CARD.format(
        name=spec.name,
        beginning=_beginning(spec),
        learned=spec.data.described,
        step=frame.step,
        epoch=frame.epoch,
        epochs=spec.training.epochs,
        last_step=last_step,
        measures=_table({WORDS.get(name, name): value for name, value in frame.measures.items()}),
        baselines=_table({f"baseline {name}, held out": value for name, value in facts["baselines"].items()}),
        course=_course(spec.training, frames, last_step, facts["total_steps"]),
        seconds=seconds,
        notes="".join(f"\n{note}\n" for note in facts["notes"]),
        command=COMMAND,
        script=repeat_script(spec, facts),
        **{name: facts[name] for name in CARD_FACTS},
    )


def _beginning(spec: RunSpec) -> str:
    origin, start = spec.origin, spec.start
    if origin is not None and origin.frame is not None:
        return f"frame {origin.frame} of run {origin.run}"
    return "fresh weights" if start is None else f"the damaged weights of {start.model} ({len(start.edits)} edits)"


def _course(config: TrainConfig, frames: list[Frame], last_step: int, total_steps: int) -> str:
    """Return in words whether early stopping or the end of a range test ended a run before its last step."""
    if config.range_test:
        rates = f"the learning rate rose exponentially from {config.range_from:g} towards {config.range_to:g}"
        end = f"; after step {last_step} the loss was no number any more" if last_step < total_steps else ""
        return f"\nA range test (Smith 2017): {rates}{end}.\n"
    if not config.stops_early:
        return ""
    found = watch(evaluations(frames), config, total_steps)
    rule = f"Early stopping (patience {config.patience}, improvements of more than {config.min_improvement:g} nats)"
    end = f"stopped the run after step {found.step}" if found.stopped else "did not stop the run"
    number = next((f.number for f in frames if f.step == found.best_step), 0)
    best = f"the held-out loss was lowest, {found.best:.4f} nats, after step {found.best_step} (frame {number})"
    return f"\n{rule} {end}; {best}.\n"


def _table(values: dict[str, float]) -> str:
    return "".join(f"- {name}: {value:.4f}\n" for name, value in values.items())
