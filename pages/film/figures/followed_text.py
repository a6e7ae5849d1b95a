"""A typed text through a training run as bytes for the browser: heads, prediction, map, words written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pages.figures.matrix import Buffers, packed
from pages.film.figures.film import coded


@dataclass(frozen=True, eq=False)
class ProbeMoment:
    """Hold what the model of one frame makes of the text.

    Shapes:
        attention: (layer, head, query_pos, key_pos), weights from 0 to 1
        probabilities: (class,)

    Args:
        number: the frame's.
        probabilities: of a classifier, else None.
        xy: the text's place in each layout, by method.
        sample: what the model writes.
        tokens, key_tokens: labels of the attention's two axes where they are not the whole film's.
    """

    number: int
    attention: np.ndarray
    probabilities: np.ndarray | None = None
    xy: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sample: str = ""
    tokens: Sequence[str] | None = None
    key_tokens: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class FilmProbe:
    """Hold a text's life in a run.

    Args:
        text: as it was typed.
        tokens, key_tokens: labels of the queries and of the keys.
        attention_name: "self", or "cross" where the output looks at the input.
        frames: in their order.
        prompt: what the page began with.

    Raises:
        ValueError: If a frame's attention has not as many rows and columns as there are labels.
    """

    text: str
    tokens: Sequence[str]
    key_tokens: Sequence[str]
    attention_name: Literal["self", "cross"]
    frames: Sequence[ProbeMoment] = ()
    prompt: str = ""

    def __post_init__(self) -> None:
        for moment in self.frames:
            needed = (
                len(self.tokens if moment.tokens is None else moment.tokens),
                len(self.key_tokens if moment.key_tokens is None else moment.key_tokens),
            )
            shape = np.shape(moment.attention)
            if len(shape) != 4 or shape[2:] != needed:
                raise ValueError(f"frame {moment.number}: attention has shape {shape}, needed (layer, head, *{needed})")


def probe_bytes(probe: FilmProbe) -> bytes:
    """Pack a probe's frames: the header's length, the header (JSON), and each frame's weights, one byte a weight."""
    buffers = Buffers()
    header = {
        "text": probe.text,
        "tokens": list(probe.tokens),
        "key_tokens": list(probe.key_tokens),
        "prompt": probe.prompt,
        "attention_name": probe.attention_name,
        "frames": [_packed_moment(moment, buffers) for moment in probe.frames],
    }
    return packed(header, buffers)


def _packed_moment(moment: ProbeMoment, buffers: Buffers) -> dict[str, Any]:
    places = {method: [float(x), float(y)] for method, (x, y) in moment.xy.items() if np.isfinite([x, y]).all()}
    header: dict[str, Any] = {"number": int(moment.number), "attention": buffers.add(coded(moment.attention))}
    header |= {"sample": moment.sample, "xy": places}
    if moment.probabilities is not None:
        header["probabilities"] = [float(value) for value in np.nan_to_num(moment.probabilities)]
    for name in ("tokens", "key_tokens"):
        if (labels := getattr(moment, name)) is not None:
            header[name] = list(labels)
    return header
