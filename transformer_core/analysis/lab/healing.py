"""Healing: a damaged model trains on, from exactly its damaged weights, until it answers as it did, or does not.

Pruning followed by more training, in which pruned weights stay 0: Han et al. 2015, section 3.3. A low rank and rounding
do not hold. The undamaged model is trained as long for comparison: see Session.
"""

import math
from dataclasses import replace

from transformer_core.analysis.lab.changes import Code, changes_of
from transformer_core.analysis.lab.text_sets import OPINIONS, language_read
from transformer_core.analysis.lab.weights import WeightEdit, damaged
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig, require_range
from transformer_core.training.config import TrainConfig
from transformer_core.training.corpora.reviews import passage
from transformer_core.training.runs.beginning import Beginning
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import LONGEST_NAME, DataSpec, RunSpec, Source, Start
from transformer_core.training.tasks.masked import sentences_of

STEPS, FEWEST_STEPS, MOST_STEPS = 200, 10, 1_500
SOURCES: dict[str, Source] = {"classifier": "reviews", "gpt": "characters", "bert": "masked_words"}  # built in, by kind
BATCH_SIZES = {"classifier": 32, "gpt": 16, "bert": 16}
LEARNING_RATES = {"classifier": 5e-4, "gpt": 1e-3, "bert": 1e-3, "translation": 1e-3}
FRAMES, POINTS, HELD_OUT = 12, 300, 300


def edits_in(changes: tuple[Code, ...]) -> tuple[WeightEdit, ...]:
    """Return the edits of weights among changes, as changes.code_of writes them.

    Raises:
        ValueError: there is none, or one is no change.
    """
    edits = tuple(change for change in changes_of(changes) if isinstance(change, WeightEdit))
    if not edits:
        raise ValueError("changes has no edit of weights, so there is nothing to heal")
    return edits


def beginning_of(bundle: Bundle, changes: tuple[Code, ...]) -> Beginning:
    """Return what a run that heals begins with, for RunList.create; the bundle's own model stays as it is.

    Raises:
        ValueError: as edits_in, or an edit does not fit the model.
    """
    return Beginning(bundle, damaged(bundle.model, edits_in(changes)))


def heal_spec(
    bundle: Bundle, changes: tuple[Code, ...], *, steps: int = STEPS, run: RunStore | None = None, name: str = ""
) -> RunSpec:
    """Return the spec of a run that trains a damaged model on; beginning_of goes with it.

    Args:
        bundle: the model as it is.
        changes: what was done to its weights, as changes.code_of writes them; all other changes are left out.
        steps: about how many; at least one pass is made over a run's own data.
        run: that the model is of, whose data are then learned from; else they are built in.
        name: of the run.

    Raises:
        ValueError: there is nothing to heal, no built-in data suit the model, or it is too large for a run.
    """
    require_range("steps", steps, FEWEST_STEPS, MOST_STEPS)
    edits_in(changes)
    if not isinstance(bundle.config, ModelConfig):
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}, and runs train Transformers alone")
    kept = tuple(code for code in changes if code[0] == "weights")
    data, training = built_in(bundle, steps) if run is None else _own(bundle, steps, run)
    return RunSpec(
        name=(name.strip() or f"{bundle.name}, healed")[:LONGEST_NAME],
        data=data,
        model=bundle.config,
        training=training,
        frames=FRAMES,
        points=POINTS,
        threads=1,
        start=Start(model=bundle.name[:LONGEST_NAME], edits=kept),
    )


def _training(kind: str, batch_size: int, epochs: int) -> TrainConfig:
    rate = LEARNING_RATES[kind]
    return TrainConfig(learning_rate=rate, weight_decay=0.0, batch_size=batch_size, epochs=max(1, epochs))


def built_in(bundle: Bundle, steps: int) -> tuple[DataSpec, TrainConfig]:
    """Return the built-in data that suit a model, and how to train on them for about so many steps.

    Raises:
        ValueError: there are none for models of its kind, or with its classes.
    """
    kind = bundle.kind
    if kind not in SOURCES:
        raise ValueError(
            f"bundle={bundle.name!r} is a {kind}, for which no data are built in; a run's model has its own"
        )
    if kind == "classifier" and [label.lower() for label in bundle.labels] != list(OPINIONS):
        raise ValueError(f"labels={bundle.labels!r:.100} must be {OPINIONS!r}, as the built-in reviews have them")
    batch_size, language = BATCH_SIZES[kind], language_read(bundle)
    data = DataSpec(source=SOURCES[kind], language=language, examples=steps * batch_size, held_out=HELD_OUT)  # type: ignore[arg-type]
    epochs = 1
    if kind == "bert":
        sentences = len(sentences_of(passage(language)))  # type: ignore[arg-type]
        epochs = round(steps / math.ceil((sentences - math.ceil(sentences / 10)) / batch_size))
    return data, _training(kind, batch_size, epochs)


def _own(bundle: Bundle, steps: int, run: RunStore) -> tuple[DataSpec, TrainConfig]:
    spec, facts = run.spec, run.facts()
    if spec.data.kind != bundle.kind:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; run {run.id} trains a {spec.data.kind}")
    batch_size, seed = spec.training.batch_size, spec.training.seed
    if spec.data.source == "characters":  # examples are windows, so that fewer of them leave the held-out part alone
        examples = min(spec.data.examples, steps * batch_size)
        data = replace(spec.data, examples=examples)
        epochs = round(steps / max(1, examples // batch_size))
    else:
        data, epochs = spec.data, round(steps / max(1, facts.get("steps_per_epoch", steps)))
    return data, replace(_training(bundle.kind, batch_size, epochs), seed=seed)
