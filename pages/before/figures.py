"""A recurrent translator as matrices (gates, the attention of two models) and bars (states and gradients by word).

Arrays come from transformer_core.analysis.before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale
from pages.translation.figures.charts import clipped

UNIT = Scale("probability", 0.0, 1.0)
KEEPING = ("update_gate", "forget_gate")  # their value is the share of the old state that stays
LINE, FOOT = 22, 56  # px: of a bar with its gap, and of the axis below
MOST_UPRIGHT = 40
HUES_OF_SERIES = (HUES["query"], HUES["positions"])


def numbered(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return unique names of tokens: each with its place."""
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
    """Draw every gate of one direction, a row for each word and a column for each unit; the keeping gate comes first.

    Shapes:
        gates: (gate, pos, unit); kept: (pos, unit)

    Args:
        names: of the gates, keys of `said`.
        said: word, unit, gate, and each gate's name.
        sort: order the columns by what a unit keeps on average, the least first.
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
    """The attention of one model to the source.

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
    """Draw the attention of each model side by side; each has its own rows, since each writes its own words.

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


def kept_bars(tokens: Sequence[str], kept: np.ndarray, said: Mapping[str, str]) -> Chart:
    """Draw the share of the state that is kept at each word, the first word on top.

    Shapes:
        kept: (pos,), shares

    Args:
        said: word, kept: titles.
    """
    names = numbered(tokens)
    data = records(word=list(names), kept=kept)
    y = alt.Y("word:N", sort=list(names), title=None).axis(
        labelLimit=130, labelFontSize=13, labelOverlap=False, labelFlush=False, ticks=False
    )
    x = alt.X("kept:Q", title=said["kept"], scale=alt.Scale(domain=[0, 1.12]))
    x = x.axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], labelFlush=False)
    tooltip = [
        alt.Tooltip("word:N", title=said["word"]),
        alt.Tooltip("kept:Q", title=said["kept"], format=".2%"),
    ]
    base = alt.Chart(data).encode(x=x, y=y, tooltip=tooltip)
    bars = base.mark_bar(height=14, cornerRadiusEnd=3, color=HUES["residual"])
    numbers = base.mark_text(align="left", dx=5, fontSize=12).encode(text=alt.Text("kept:Q", format=".0%"))
    return alt.layer(bars, numbers).properties(width="container", height=LINE * len(names) + FOOT)


def word_bars(
    tokens: Sequence[str],
    series: Mapping[str, np.ndarray],
    said: Mapping[str, str],
    *,
    share: bool = True,
    height: int = 280,
) -> Chart:
    """Draw one bar for each word and series, side by side.

    Shapes:
        every series: (pos,)

    Args:
        series: values by the name that the legend shows.
        said: word, up: titles.
        share: values are shares, written as per cent.
    """
    names, listed = numbered(tokens), list(series)
    data = records(
        word=list(names) * len(listed),
        value=np.concatenate([np.asarray(values, dtype=float) for values in series.values()]),
        series=[name for name in listed for _ in names],
    )
    axis = alt.Axis(
        labelAngle=-40, labelLimit=110, labelOverlap=len(names) > MOST_UPRIGHT, ticks=False, labelFontSize=13
    )
    legend = alt.Legend(title=None, orient="top", labelLimit=320) if len(listed) > 1 else None
    hues = alt.Scale(domain=listed, range=list(HUES_OF_SERIES[: len(listed)]))
    return (
        alt.Chart(data)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("word:N", sort=list(names), title=None, axis=axis),
            xOffset=alt.XOffset("series:N", sort=listed),
            y=alt.Y("value:Q", title=said["up"], axis=alt.Axis(format=".0%" if share else "~g", minExtent=46)),
            color=alt.Color("series:N", scale=hues, legend=legend),
            tooltip=[
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("word:N", title=said["word"]),
                alt.Tooltip("value:Q", title=said["up"], format=".2%" if share else ".4~g"),
            ],
        )
        .properties(width="container", height=height)
    )
