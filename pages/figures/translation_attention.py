"""Cross-attention as matrices, and what hiding each source word does: a step's rows by head, and means over heads.

Arrays come from transformer_core.analysis.translation. Read next: translation_tree.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale
from pages.figures.translation import clipped


def step_rows(
    self_row: np.ndarray,
    cross_row: np.ndarray,
    read: tuple[str, ...],
    source: tuple[str, ...],
    said: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    version: str,
) -> MatrixFigure:
    """Draw one step's rows of one layer: a line a head, over the words read so far and over the source.

    Shapes:
        self_row: (head, step); cross_row: (head, source_pos)

    Args:
        said: head, mean, read, source, self, cross, weight: names of axes and panels.
    """
    rows = Axis(said["head"], (*map(str, range(len(self_row))), said["mean"]))
    panels = tuple(
        Panel(
            name,
            said[name],
            np.concatenate([values, values.mean(0, keepdims=True)]),
            Scale("probability", 0.0, 1.0),
            cols=Axis(said[axis], labels, key=axis),
        )
        for name, axis, values, labels in (("self", "read", self_row, read), ("cross", "source", cross_row, source))
    )
    return MatrixFigure(
        panels,
        rows,
        Axis(said["source"], source, key="source"),
        ui,
        detail="exact",
        layout="single",
        quantity=said["weight"],
        filename="translation_step",
        version=version,
    )


def mean_matrix(
    weights: np.ndarray,
    words: tuple[str, ...],
    source: tuple[str, ...],
    said: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    title: str,
    version: str,
    note: str = "",
) -> MatrixFigure:
    """Draw one matrix of cross-attention: what each word written looked at, mean over heads.

    Shapes:
        weights: (step, source_pos)

    Args:
        said: query, key, weight.
    """
    return MatrixFigure(
        (Panel("mean", title, weights, Scale("probability", 0.0, 1.0)),),
        Axis(said["query"], words),
        Axis(said["key"], source),
        ui,
        detail="exact",
        link="attention",
        quantity=said["weight"],
        note=note,
        filename="translation_mean",
        version=version,
    )


def hiding_chart(weights: np.ndarray, change: np.ndarray, source: Sequence[str], said: Mapping[str, str]) -> Chart:
    """Draw each source word: how much it is looked at, against what hiding it does.

    Shapes:
        weights, change: (source_pos,), shares

    Args:
        said: source, weight, points.
    """
    data = records(
        source=[clipped(label) for label in source],
        place=list(range(len(source))),
        weight=weights,
        points=100 * change,
        zero=[0.0] * len(source),
    )
    high = max(float(weights.max()), 0.05) * 1.15
    x = alt.X("weight:Q", title=said["weight"], scale=alt.Scale(domain=[0, high]), axis=alt.Axis(format=".2f"))
    y = alt.Y("points:Q", title=said["points"], scale=alt.Scale(padding=24), axis=alt.Axis(minExtent=46))
    tooltip = [
        alt.Tooltip("source:N", title=said["source"]),
        alt.Tooltip("weight:Q", title=said["weight"], format=".4f"),
        alt.Tooltip("points:Q", title=said["points"], format="+.2f"),
    ]
    base = alt.Chart(data).encode(x=x, tooltip=tooltip)
    stems = base.mark_rule(color=HUES["residual"], opacity=0.5).encode(y=alt.Y("zero:Q"), y2="points:Q")
    dots = base.mark_circle(size=90, color=HUES["key"], opacity=0.9).encode(y=y)
    names = base.mark_text(align="left", dx=8, dy=-7, fontSize=13, color=HUES["key"]).encode(y=y, text="source:N")
    return alt.layer(stems, dots, names).properties(width="container", height=300)
