"""Starting a run that heals a damaged model: what a page calls, with names alone; folders are found on this side."""

from pages.kit.models import OF_RUN, called, open_bundle
from pages.kit.runs import begin_run, find_run
from pages.language import t
from pages.serving.owners import may_change
from transformer_core.analysis.lab.changes import Code
from transformer_core.analysis.lab.healing import STEPS, beginning_of, heal_spec
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.run_store import RunStore


def heal(model: str, changes: tuple[Code, ...], *, steps: int = STEPS) -> RunStore:
    """Start a run that trains a model on from its damaged weights, and return it; follow shows it.

    Args:
        model: its name, as the model's control has it.
        changes: as lab.changes.code_of writes them; those of weights count.
        steps: about how many.

    Raises:
        ValueError: the model cannot be opened or healed, the run cannot be made, or its data are somebody else's.
    """
    bundle, found = open_bundle(model), OF_RUN.fullmatch(model)
    run = find_run(found[1]) if found is not None else None
    file = None if run is None else run.spec.data.file
    if run is not None and file is not None and not may_change(run.owner):
        raise RunError(t("heal.not_yours"))
    spec = heal_spec(bundle, changes, steps=steps, run=run, name=t("heal.run_name", model=called(model)))
    data = None if run is None or file is None else run.folder / file
    return begin_run(spec, data, beginning_of(bundle, changes))
