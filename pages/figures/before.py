"""Recurrent readers as matrices: gates by word and unit, and two models' looks at one sentence side by side.

Arrays come from transformer_core.analysis.before. Read next: before_charts.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale
from pages.figures.translation import clipped

UNIT = Scale("probability", 0.0, 1.0)
KEEPING = ("update_gate", "forget_gate")  # what they let through is the old state


def numbered(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return tokens as names that all differ: each with its place."""
    return tuple(f"{place} {clipped(token)}" for place, token in enumerate(tokens))


def gates_figure(
    gates: np.ndarray,
    names: Sequence[str],
    tokens: tuple[str, ...],
    said: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    kept: np.ndarray,
    sort: bool,
    version: str,
    note: str = "",
) -> MatrixFigure:
    """Draw every gate of one direction, a line a word and a column a unit; the one that keeps comes first.

    Shapes:
        gates: (gate, pos, unit); kept: (pos, unit)

    Args:
        names: of the gates, keys of `said`.
        said: word, unit, gate, and each gate's name.
        sort: columns in the order of what a unit keeps on average, the most forgetful first; else as they are.
    """
    order = np.argsort(kept.mean(0), kind="stable") if sort else np.arange(gates.shape[-1])
    keeps_first = sorted(zip(names, gates, strict=True), key=lambda pair: pair[0] not in KEEPING)
    panels = tuple(Panel(name, said[name], values[:, order], UNIT) for name, values in keeps_first)
    return MatrixFigure(
        panels,
        Axis(said["word"], tokens),
        Axis(said["unit"], tuple(map(str, order.tolist()))),
        ui,
        columns=1,
        layout="single",
        quantity=said["gate"],
        note=note,
        filename="before_gates",
        version=version,
    )


@dataclass(frozen=True, eq=False)
class Looks:
    """One model's looks at the source.

    Shapes:
        weights: (target_pos, source_pos)

    Args:
        id: of the panel; title: printed above it.
        target, source: labels of its rows and columns.
    """

    id: str
    title: str
    weights: np.ndarray
    target: tuple[str, ...]
    source: tuple[str, ...]


def looks_figure(
    looks: Sequence[Looks], said: Mapping[str, str], ui: Mapping[str, str], *, version: str, note: str = ""
) -> MatrixFigure:
    """Draw the looks of each model beside each other; each has its own rows, since each writes its own words.

    Args:
        said: target, source, weight: names of axes and of a value.
    """
    panels = tuple(
        Panel(
            look.id,
            look.title,
            look.weights,
            UNIT,
            rows=Axis(said["target"], look.target, key="target" if look.target == looks[0].target else look.id),
            cols=Axis(said["source"], look.source, key="source" if look.source == looks[0].source else look.id),
        )
        for look in looks
    )
    return MatrixFigure(
        panels,
        Axis(said["target"], looks[0].target, key="target"),
        Axis(said["source"], looks[0].source, key="source"),
        ui,
        detail="exact",
        layout="single",
        quantity=said["weight"],
        note=note,
        filename="before_looks",
        version=version,
    )
