"""Settings: a run's spec as one flat table of names and values, to compare runs and to change single values."""

import dataclasses
import re
from collections.abc import Collection
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.training.config import TrainConfig
from transformer_core.training.spec import LONGEST_NAME, DataSpec, NetworkSpec, RunSpec

SET_BY_DATA = frozenset(("vocab_size", "target_vocab_size", "n_classes", "pad_id", "pad_is_read"))
PARTS = ("data", "network", "model", "training")
IN_DATA = tuple(field.name for field in dataclasses.fields(DataSpec) if field.name != "file")
IN_NETWORK = tuple(field.name for field in dataclasses.fields(NetworkSpec))
IN_MODEL = tuple(field.name for field in dataclasses.fields(ModelConfig) if field.name not in SET_BY_DATA)
IN_TRAINING = tuple(field.name for field in dataclasses.fields(TrainConfig))
IN_RUN = ("softmax_before_loss", "frames", "points", "threads")
NAMES = (*IN_DATA, *IN_NETWORK, *IN_MODEL, *IN_TRAINING, *IN_RUN)
VOCABULARY = frozenset(
    (
        *("source", "language", "examples", "held_out", "vocab_size", "tokenizer"),
        *("symbols", "length", "labels", "given", "seed"),
    )
)

COUNTED = {"n_layers": "layers", "n_heads": "heads", "epochs": "epochs", "examples": "examples", "frames": "frames"}
COUNTED |= {"points": "points", "threads": "threads", "symbols": "letters", "max_len": "tokens"}
IN_SHORT = {"learning_rate": "lr", "batch_size": "batch", "vocab_size": "vocabulary", "weight_decay": "decay"}
IN_SHORT |= {name: name for name in ("d_model", "d_head", "d_ff")}
IN_SHORT |= {"label_smoothing": "smoothing", "clip_norm": "clip"}
IN_SHORT |= dict.fromkeys(("network", "optimizer", "activation", "precision"), "")
NUMBERED = re.compile(r" \([0-9]+\)$")


def settings(spec: RunSpec) -> dict[str, Any]:
    """Return every setting of a spec by its name, in reading order; d_head is None where d_model and n_heads fix it."""
    places = (
        *((IN_DATA, spec.data), (IN_NETWORK, spec.network), (IN_MODEL, spec.model)),
        *((IN_TRAINING, spec.training), (IN_RUN, spec)),
    )
    values = {name: getattr(owner, name) for names, owner in places for name in names}
    return values | {"d_head": None if values["d_head"] == values["d_model"] // values["n_heads"] else values["d_head"]}


def change(spec: RunSpec, **values: Any) -> RunSpec:
    """Return a spec with other settings; sizes of the model that the data determine stay.

    Raises:
        ValueError: a name is no setting, or a value is outside its range.
    """
    if unknown := [name for name in values if name not in NAMES]:
        raise ValueError(f"{unknown[0]}={values[unknown[0]]!r:.100} is no setting of a run")

    def of(names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in names}

    model = {"d_head": settings(spec)["d_head"], **of(IN_MODEL)}
    return dataclasses.replace(
        spec,
        data=dataclasses.replace(spec.data, **of(IN_DATA)),
        network=dataclasses.replace(spec.network, **of(IN_NETWORK)),
        model=dataclasses.replace(spec.model, **model),
        training=dataclasses.replace(spec.training, **of(IN_TRAINING)),
        **of(IN_RUN),
    )


def differences(first: RunSpec, second: RunSpec) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two specs differ: the value of each, by name."""
    left, right = settings(first), settings(second)
    return {name: (left[name], right[name]) for name in NAMES if left[name] != right[name]}


def obstacles(first: RunSpec, second: RunSpec) -> list[str]:
    """Return the settings that keep the second run from starting with the weights of the first.

    These are the network; the settings that determine the vocabulary; and the seed: with another one the data are
    generated or split differently, so that the first run would have seen held-out examples of the second.
    """
    return [name for name in differences(first, second) if name in VOCABULARY or name == "network"]


def called(base: RunSpec, usual: RunSpec, spec: RunSpec) -> str:
    """Return a short name for a run from the settings that differ: "quick · lr 0.002", "my.csv · quick · 2 epochs".

    Args:
        base: the preset or the run that it was made from; the name starts with the base's name. The name of other data
            goes before it, or replaces it where the base has data of its own.
        usual: the base with the run's data and the sizes that suit them.
        spec: the run's.
    """
    heads = [NUMBERED.sub("", base.name)]
    if any(getattr(usual.data, name) != getattr(base.data, name) for name in ("source", "file", "given")):
        heads = [_data_name(usual), *(heads if base.data.given is None else ())]
    branched = spec.origin is not None and spec.origin.frame is not None
    changes = [_in_short(name, value) for name, (_, value) in differences(usual, spec).items()]
    parts = [*heads, *([f"from frame {spec.origin.frame}"] if spec.origin and branched else []), *changes]
    if len(" · ".join(parts)) <= LONGEST_NAME:
        return " · ".join(parts)
    while len(parts) > 1 and len(" · ".join((*parts, "…"))) > LONGEST_NAME:
        parts.pop()
    return " · ".join((*parts, "…"))[:LONGEST_NAME]


def numbered(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken, with (2), (3), ... after it where needed."""
    numbers = (f"{name[: LONGEST_NAME - 6]} ({number})" for number in range(2, len(taken) + 3))
    return next(one for one in (name, *numbers) if one not in taken)


def _data_name(spec: RunSpec) -> str:
    given, source = spec.data.given, spec.data.source
    if given is not None and source != "imdb":
        return given.name or "pasted text"
    return source.replace("_", " ")


def _in_short(name: str, value: Any) -> str:
    """Return a changed setting in a word or two."""
    if name in COUNTED:
        return f"{value} {COUNTED[name]}" if value != 1 else f"1 {COUNTED[name].removesuffix('s')}"
    if isinstance(value, bool):
        return name.replace("_", " ") if value else f"no {name.replace('_', ' ')}"
    shown = "off" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{IN_SHORT.get(name, name.replace('_', ' '))} {shown}".strip()
