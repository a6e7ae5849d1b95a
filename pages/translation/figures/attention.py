"""Cross-attention as matrices, and what hiding each source word does: a step's rows by head, and means over heads.

Arrays come from transformer_core.analysis.translation.

A given target word by word: how likely each was, and what the model would rather have written.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale
from pages.translation.figures.steps import clipped, shown_chance


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


MOST_UPRIGHT = 40
MOST_NUMBERED = 24


def forced_bars(
    words: Sequence[str],
    probabilities: np.ndarray,
    ranks: np.ndarray,
    favourites: Sequence[str],
    favourite_probabilities: np.ndarray,
    said: Mapping[str, str],
) -> Chart:
    """Draw each word's probability, with the model's own favourite above it where that is another word.

    Shapes:
        probabilities, ranks, favourite_probabilities: (step,)

    Args:
        said: word, probability, rank, favourite, first, other: titles, and words for the two kinds of bar; favourite
            is that of the line, too.
    """
    names = [f"{place} {clipped(word)}" for place, word in enumerate(words)]
    first = ranks == 1
    data = records(
        word=names,
        probability=probabilities,
        rank=ranks,
        favourite=[clipped(word) for word in favourites],
        top=favourite_probabilities,
        line=np.where(first, np.nan, favourite_probabilities),
        number=[shown_chance(chance, digits=0) if len(names) <= MOST_NUMBERED else "" for chance in probabilities],
        kind=[said["first"] if one else said["other"] for one in first],
        over=["" if one else clipped(word) for one, word in zip(first, favourites, strict=True)],
    )
    axis = alt.Axis(
        labelAngle=-40, labelLimit=110, labelOverlap=len(names) > MOST_UPRIGHT, ticks=False, labelFontSize=13
    )
    tooltip = [
        alt.Tooltip("word:N", title=said["word"]),
        alt.Tooltip("probability:Q", title=said["probability"], format=".4%"),
        alt.Tooltip("rank:Q", title=said["rank"]),
        alt.Tooltip("favourite:N", title=said["favourite"]),
        alt.Tooltip("top:Q", title=f"{said['favourite']} · {said['probability']}", format=".2%"),
    ]
    base = alt.Chart(data).encode(x=alt.X("word:N", sort=names, title=None, axis=axis), tooltip=tooltip)
    y = alt.Y("probability:Q", title=said["probability"], scale=alt.Scale(domain=[0, 1.16]))
    y = y.axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], minExtent=46)
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(
            domain=[said["first"], said["other"], said["favourite"]],
            range=[HUES["query"], HUES["positions"], HUES["residual"]],
        ),
        legend=alt.Legend(orient="top", direction="horizontal", labelLimit=0),
    )
    bars = base.mark_bar(cornerRadiusEnd=3).encode(y=y, color=colour)
    numbers = base.mark_text(dy=-8, fontSize=11).encode(y=y, color=colour, text="number:N")
    ticks = base.mark_tick(thickness=3).encode(y=alt.Y("line:Q"), color=alt.datum(said["favourite"]))
    names_over = base.mark_text(dy=-9, fontSize=12, color=HUES["residual"]).encode(y=alt.Y("line:Q"), text="over:N")
    return alt.layer(bars, numbers, ticks, names_over).properties(width="container", height=300)
