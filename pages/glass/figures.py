"""Any recorded tensor as a matrix: the slice that is shown, its index in the tensor, its colours and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from pages.figures.matrix import Axis, Kind, MatrixFigure, Panel, Role, Scale

ROLES: dict[str, Role] = {
    "query": "query",
    "rotated_query": "query",
    "key": "key",
    "rotated_key": "key",
    "value": "value",
    "heads": "value",
    "scores": "weights",
    "masked_scores": "weights",
    "weights": "weights",
    "position_embedding": "positions",
    "position_bias": "positions",
}  # all others: residual
ROLES |= {"normalized_query": "query", "normalized_key": "key", "uncapped_scores": "weights"}
HEAD_AXES = frozenset(("head", "kv_head", "each_expert"))


@dataclass(frozen=True, eq=False)
class Slice:
    """The part of a tensor that is shown: the first sentence of the batch, and one head or expert where there are any.

    Shapes:
        matrix: (row, col)

    Args:
        axes: of the tensor.
        head: the one shown.
        rows, cols: the axes that run down and across; a vector is one row, of the axis batch.
    """

    matrix: np.ndarray
    axes: tuple[str, ...]
    head: int
    rows: str
    cols: str

    @property
    def of_head(self) -> bool:
        """Whether the tensor has heads, of queries or of keys and values, or experts."""
        return not HEAD_AXES.isdisjoint(self.axes)

    def index(self, cell: tuple[int, int]) -> tuple[int, ...]:
        """Return the index in the tensor of a cell (row, col) of the matrix."""
        fixed = {"batch": 0, "one": 0, self.rows: cell[0], self.cols: cell[1]} | dict.fromkeys(HEAD_AXES, self.head)
        return tuple(fixed[axis] for axis in self.axes)

    def strongest(self) -> tuple[int, int]:
        """Return the finite cell of the greatest magnitude."""
        magnitude = np.where(np.isfinite(self.matrix), np.abs(self.matrix), -1.0)
        row, col = np.unravel_index(int(magnitude.argmax()), magnitude.shape)
        return int(row), int(col)

    def cell(self, written: str | None) -> tuple[int, int] | None:
        """Return the cell that a link writes as ``row.col``; None where the matrix has no such cell."""
        row, _, col = (written or "").partition(".")
        if not all(part.isascii() and part.isdigit() and len(part) < 7 for part in (row, col)):
            return None
        cell = int(row), int(col)
        return cell if all(place < side for place, side in zip(cell, self.matrix.shape, strict=True)) else None


def slice_of(values: np.ndarray, axes: tuple[str, ...], head: int) -> Slice:
    """Take the first sentence and one head of a tensor.

    Shapes:
        values: any, one dimension for each of ``axes``
    """
    taken = {"batch": 0, "one": 0} | dict.fromkeys(HEAD_AXES, head)
    place = tuple(taken.get(axis, slice(None)) for axis in axes)
    rows, cols = ("batch", *(axis for axis in axes if axis not in taken))[-2:]
    return Slice(np.atleast_2d(values[place]), axes, head, rows, cols)


def tensor_figure(
    part: Slice,
    name: str,
    kind: str,
    *,
    labels: Mapping[str, tuple[str, ...]],
    names: Mapping[str, str],
    cell: tuple[int, int],
    panel: str,
    gradient: Slice | None = None,
    alone: bool = False,
) -> MatrixFigure:
    """Draw a slice with its axes labelled.

    Args:
        name: the tensor's full name.
        kind: its scale in SITES.
        labels: of each axis that has any; others count from 0.
        names: of the axes, in the reader's language.
        cell: the pinned cell.
        panel: printed above the matrix, such as the head.
        gradient: the same slice of its gradient, where that is drawn.
        alone: without the values.
    """
    leaf = name.rpartition(".")[2]
    rows, cols = (
        Axis(names[axis], labels.get(axis) or tuple(map(str, range(size))), key=axis)
        for axis, size in zip((part.rows, part.cols), part.matrix.shape, strict=True)
    )
    panels = [] if alone else [Panel("tensor", panel or leaf, part.matrix, _scale(kind, part.matrix))]
    if gradient is not None:
        title = " · ".join(filter(None, (f"∂L/∂{leaf}", panel)))
        panels.append(Panel("gradient", title, gradient.matrix, Scale.of("signed", gradient.matrix)))
    return MatrixFigure(
        tuple(panels),
        rows,
        cols,
        role=ROLES.get(leaf, "residual"),
        cell=cell,
        quantity=f"∂L/∂{leaf}" if alone else leaf,
        title=name,
        filename=name.replace(".", "_") + (f"_head{part.head}" if part.of_head else ""),
    )


def _scale(kind: str, values: np.ndarray) -> Scale:
    finite = values[np.isfinite(values)]
    if kind == "probability" and not (finite.min() >= 0 and finite.max() <= 1):
        return Scale.of("signed", values)  # an edit may leave the range
    return Scale.of(cast(Kind, "count" if kind == "id" else kind), values)
