"""Settings: a run's spec as one flat table of names and values, so that runs can be compared and one value changed.

Read next: presets.py.
"""

import dataclasses
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.training.config import TrainConfig
from transformer_core.training.runs.spec import LONGEST_NAME, DataSpec, RunSpec

SET_BY_DATA = frozenset(("vocab_size", "target_vocab_size", "n_classes", "pad_id"))
PARTS = ("data", "model", "training")
IN_DATA = tuple(field.name for field in dataclasses.fields(DataSpec) if field.name != "file")
IN_MODEL = tuple(field.name for field in dataclasses.fields(ModelConfig) if field.name not in SET_BY_DATA)
IN_TRAINING = tuple(field.name for field in dataclasses.fields(TrainConfig))
IN_RUN = ("softmax_before_loss", "frames", "points", "threads")
NAMES = (*IN_DATA, *IN_MODEL, *IN_TRAINING, *IN_RUN)
VOCABULARY = frozenset(
    (
        *("source", "language", "examples", "held_out", "vocab_size", "tokenizer"),
        *("symbols", "length", "labels", "seed"),
    )
)


def settings(spec: RunSpec) -> dict[str, Any]:
    """Return every setting of a spec by its name, in reading order; d_head is None where d_model and n_heads fix it."""
    places = ((IN_DATA, spec.data), (IN_MODEL, spec.model), (IN_TRAINING, spec.training), (IN_RUN, spec))
    told = {name: getattr(owner, name) for names, owner in places for name in names}
    return told | {"d_head": None if told["d_head"] == told["d_model"] // told["n_heads"] else told["d_head"]}


def change(spec: RunSpec, **values: Any) -> RunSpec:
    """Return a spec with other settings; what the data sets in the model stays as it was.

    Raises:
        ValueError: a name that is no setting, or a value outside its range.
    """
    if unknown := [name for name in values if name not in NAMES]:
        raise ValueError(f"{unknown[0]}={values[unknown[0]]!r:.100} is no setting of a run")

    def of(names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in names}

    model = {"d_head": settings(spec)["d_head"], **of(IN_MODEL)}
    return dataclasses.replace(
        spec,
        data=dataclasses.replace(spec.data, **of(IN_DATA)),
        model=dataclasses.replace(spec.model, **model),
        training=dataclasses.replace(spec.training, **of(IN_TRAINING)),
        **of(IN_RUN),
    )


def differences(first: RunSpec, second: RunSpec) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two specs differ: the value of each, by name."""
    left, right = settings(first), settings(second)
    return {name: (left[name], right[name]) for name in NAMES if left[name] != right[name]}


def obstacles(first: RunSpec, second: RunSpec) -> list[str]:
    """Return the settings that keep the second run from going on with the weights of the first.

    These are the ones that the vocabulary follows from. The seed is one of them: another one makes or splits the data
    anew, and what was held out would have been seen.
    """
    return [name for name in differences(first, second) if name in VOCABULARY]


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def called(base: RunSpec, spec: RunSpec) -> str:
    """Return a name for a run: that of its base, and what was changed in it."""
    changes = (f"{name}={_shown(value)}" for name, (_, value) in differences(base, spec).items())
    name = ", ".join((base.name, *changes))
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
