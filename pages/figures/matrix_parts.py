"""The parts of an interactive matrix: named axes, panels, scales, and one head's arithmetic.

Vaswani et al. 2017, eq. 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Role = Literal["weights", "query", "key", "value", "residual", "positions"]
Kind = Literal["probability", "signed", "count", "mask", "added"]


@dataclass(frozen=True)
class Axis:
    """Name one side of a matrix.

    Args:
        name: What its entries are, as drawn beside it, for example "query position".
        labels: One label an entry, whole; the drawing shortens what does not fit.
        key: Axes with one key move together when a cell is pointed at; the name if empty.
    """

    name: str
    labels: tuple[str, ...]
    key: str = ""


@dataclass(frozen=True)
class Scale:
    """Bound the colours of a panel: every finite value lies in [low, high].

    Masks have no colour bar, their two values have two shades: "mask" for 1, may attend, and 0, hidden; "added" for
    the same as it is added to scores, 0 and minus infinity.

    Raises:
        ValueError: If low is not below high, or a kind's own bounds are broken.
    """

    kind: Kind
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"scale low={self.low} must be below high={self.high}, both finite")
        if self.kind == "signed" and self.low != -self.high:
            raise ValueError(f"signed scale low={self.low} must be minus high={self.high}")
        if self.kind not in get_args(Kind):
            raise ValueError(f"scale kind={self.kind!r} must be one of {', '.join(get_args(Kind))}")

    @classmethod
    def of(cls, kind: Kind, *arrays: np.ndarray) -> Scale:
        """Return the scale that holds all arrays: [0, 1], symmetric about 0, or [0, greatest]."""
        if kind in ("probability", "mask", "added"):
            return cls(kind, 0.0, 1.0)
        finite = (np.abs(array[np.isfinite(array)]) for array in map(np.asarray, arrays))
        greatest = max((float(part.max()) for part in finite if part.size), default=0.0) or 1.0
        return cls(kind, -greatest if kind == "signed" else 0.0, greatest)


@dataclass(frozen=True, eq=False)
class Panel:
    """Hold one matrix of the figure.

    Args:
        id: What a click reports.
        title: What is printed above it, for example "Head 3".
        values: (rows, cols); NaN and infinities mean masked.
        scale: The bounds of its colours.
        row_heading: Printed to the left of the line that this panel opens, for example "Layer 0".
        rows: Its own axis where it is not the figure's.
        cols: Its own axis where it is not the figure's.
        role: Its own hue where it is not the figure's.
    """

    id: str
    title: str
    values: np.ndarray
    scale: Scale
    row_heading: str = ""
    rows: Axis | None = None
    cols: Axis | None = None
    role: Role | None = None


@dataclass(frozen=True, eq=False)
class Explain:
    """Hold what one head's weights were computed from, in float32, so that the reader's browser can recompute them.

    Args:
        query: (query_pos, d_head).
        key: (key_pos, d_head).
        scores: (query_pos, key_pos), query @ key.T / divisor + bias, before the mask.
        masked_scores: (query_pos, key_pos), not finite where masked.
        weights: (query_pos, key_pos), after the softmax.
        divisor: The square root of d_head.
        bias: (query_pos, key_pos) added to the scores before the mask (ALiBi), if any.
        panels: Ids of the panels whose cells it explains; empty means those on the figure's own axes.
    """

    query: np.ndarray
    key: np.ndarray
    scores: np.ndarray
    masked_scores: np.ndarray
    weights: np.ndarray
    divisor: float
    bias: np.ndarray | None = None
    panels: tuple[str, ...] = ()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays there are, by name."""
        names = ("query", "key", "scores", "masked_scores", "weights", "bias")
        return {name: np.asarray(getattr(self, name)) for name in names if getattr(self, name) is not None}

    def __post_init__(self) -> None:
        shapes = {name: array.shape for name, array in self.arrays().items()}
        if any(len(shape) != 2 for shape in shapes.values()) or shapes["query"][1:] != shapes["key"][1:]:
            got = f"{shapes['query']} and {shapes['key']}"
            raise ValueError(f"query and key must be (pos, d_head) with one d_head, got {got}")
        pairs = (shapes["query"][0], shapes["key"][0])
        for name, shape in shapes.items():
            if name not in ("query", "key") and shape != pairs:
                raise ValueError(f"{name} has shape {shape}, needed (query_pos, key_pos)={pairs}")
        if not self.divisor > 0:
            raise ValueError(f"divisor={self.divisor} must be above 0")


def check_panel(panel: Panel, axes: tuple[Axis, Axis]) -> None:
    """Raise ValueError unless a panel's values fit its axes and its scale."""
    values = np.asarray(panel.values)
    needed = tuple(len(axis.labels) for axis in axes)
    if values.shape != needed or 0 in needed:
        raise ValueError(f"panel {panel.id!r} has values of shape {values.shape}, its axes have {needed} labels")
    finite = values[np.isfinite(values)]
    scale = panel.scale
    allowed = {"mask": (0, 1), "added": (0, -np.inf)}.get(scale.kind)
    if allowed and not np.isin(values, allowed).all():
        raise ValueError(f"panel {panel.id!r} is a mask; its values must be among {allowed}, got {np.unique(values)}")
    slack = 1e-4 * (scale.high - scale.low)
    if finite.size and (finite.min() < scale.low - slack or finite.max() > scale.high + slack):
        reach = f"[{finite.min():.6g}, {finite.max():.6g}]"
        bounds = f"[{scale.low:.6g}, {scale.high:.6g}]"
        raise ValueError(f"panel {panel.id!r} has values in {reach}, outside its scale {bounds}")
