"""The charts of the Why? page: curves with a place on the axis, bars, and one dot a run or head.

Arrays come from transformer_core.analysis.why.

The axes and legends of the Why? page's charts: linear and logarithmic sides, hues with shapes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, LABELS, PALETTE, Chart, records
from pages.figures.forms import Filled, form, kept, named

HEIGHT = 290
MOST_LARGE_POINTS = 32
GREY = "#888888"


SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
NO_MARK = "M0,0Z"
MOST_OWN_TICKS, MOST_POWERS = 10, 6


@dataclass(frozen=True)
class Side:
    """One axis of a chart.

    Args:
        title: with its unit.
        log: whether it is logarithmic.
        domain: its ends, else those of the data.
        format: of its numbers, in d3's notation; None leaves it to the chart.
    """

    title: str
    log: bool = False
    domain: tuple[float, float] | None = None
    format: str | None = None

    def scale(self, values: np.ndarray) -> alt.Scale:
        """Return the scale that holds the values."""
        good = values[np.isfinite(values) & ((values > 0) if self.log else True)]
        ends = self.domain or ((float(good.min()), float(good.max())) if good.size else (0.1, 1.0))
        if self.log:
            return alt.Scale(type="log", domain=list(ends), nice=False)
        return alt.Scale(domain=list(ends), nice=self.domain is None, zero=False)

    def axis(self, values: np.ndarray) -> alt.Axis:
        """Return the axis of the values, with round numbers on it."""
        if not self.log:
            shown = alt.Undefined if self.format is None else self.format
            return alt.Axis(format=shown, labelOverlap="greedy", tickCount=6)
        if self.format is None:
            return alt.Axis(labelExpr=LABELS, labelOverlap="greedy", values=_round_places(values))
        return alt.Axis(format=self.format, labelOverlap="greedy", values=_round_places(values))


def _round_places(values: np.ndarray) -> list[float]:
    """Return where a logarithmic axis has its ticks: at a few whole values themselves, else at 1, 2, 5 or powers."""
    places = sorted({float(value) for value in values if value > 0 and np.isfinite(value)}) or [1.0]
    if len(places) <= MOST_OWN_TICKS and all(place.is_integer() for place in places):
        return places
    low, high = math.floor(math.log10(places[0])), math.ceil(math.log10(places[-1]))
    stride = max(1, round((high - low) / MOST_POWERS))
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    return [step * 10.0**power for power in range(low, high + 1, stride) for step in steps]


def series_looks(names: Sequence[str], hues: Sequence[str], listed: Sequence[str], *, dashed: bool) -> dict[str, Any]:
    """Return hue, dash and shape of each series, and a legend of those that are listed; the others have no mark.

    Args:
        dashed: tell the listed series apart by dashes, where they have no points to tell them by.
    """
    legend = alt.Legend(title=None, orient="top", labelLimit=320, symbolSize=90, columns=2, values=list(listed))
    if dashed:
        legend.symbolType = "stroke"
    shown = legend if listed else None
    marks = [shape if name in listed or not listed else NO_MARK for name, shape in zip(names, SHAPES, strict=False)]
    dashes = [list(DASHES[index if dashed else 0]) if name in listed else [5, 4] for index, name in enumerate(names)]
    domain = list(names)
    return {
        "color": alt.Color("series:N", scale=alt.Scale(domain=domain, range=list(hues[: len(names)])), legend=shown),
        "shape": alt.Shape("series:N", scale=alt.Scale(domain=domain, range=marks), legend=shown),
        "strokeDash": alt.StrokeDash(
            "series:N", scale=alt.Scale(domain=domain, range=dashes), legend=shown if dashed else None
        ),
    }


def curves(
    x: np.ndarray,
    series: Mapping[str, Sequence[float] | np.ndarray],
    *,
    across: Side,
    up: Side,
    at: float | None = None,
    upto: float | None = None,
    hues: Sequence[str] = PALETTE,
    points: bool = True,
    guides: Mapping[str, float] | None = None,
    height: int = HEIGHT,
) -> Filled:
    """Draw one curve a series, with a rule at a place; the axes hold all of it even where only a part is drawn.

    Shapes:
        x and every series: (point,)

    Args:
        series: values by the name that the legend shows.
        at: where a vertical rule stands.
        upto: curves end here; what lies beyond is yet to be found.
        guides: series that are no measurements, each with the place of its name: dashed, drawn to the end.
    """
    guides = guides or {}
    rows: list[tuple[Any, ...]] = []
    for name, values in series.items():
        for place, value in zip(x.tolist(), np.asarray(values, dtype=float).tolist(), strict=True):
            visible = upto is None or place <= upto or name in guides
            if visible and np.isfinite(value) and (value > 0 or not up.log):
                rows.append((place, value, name))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    everything = np.concatenate([np.asarray(values, dtype=float) for values in series.values()])
    good = everything[np.isfinite(everything) & ((everything > 0) if up.log else True)]
    levels = good.tolist() if up.log else [float(good.min()), float(good.max())] if good.size else []
    drawn = _curves(
        tuple(series), tuple(guides), across, up, tuple(x.tolist()), tuple(levels), tuple(hues), points, at is not None
    )
    data = {"curves": records(x=columns[0], y=columns[1], series=columns[2])}
    if guides:
        data["guides"] = _places_of(guides, x, series)
    if at is not None:
        data["at"] = records(x=[at])
    return Filled(drawn, data, height=height)


@form
def _curves(
    names: Sequence[str],
    guides: Sequence[str],
    across: Side,
    up: Side,
    places: Sequence[float],
    levels: Sequence[float],
    hues: Sequence[str],
    points: bool,
    at: bool,
) -> Chart:
    x, everything = np.array(places), np.array(levels)
    listed = [name for name in names if name not in guides]
    base = named("curves").encode(
        x=alt.X("x:Q", title=across.title, scale=across.scale(x), axis=across.axis(x)),
        y=alt.Y("y:Q", title=up.title, scale=up.scale(everything), axis=up.axis(everything)),
        tooltip=[
            alt.Tooltip("series:N", title=" "),
            alt.Tooltip("x:Q", title=across.title, format="~g"),
            alt.Tooltip("y:Q", title=up.title, format=".4~g"),
        ],
    )
    looks = series_looks(names, hues, listed, dashed=not points)
    size = 55 if x.size <= MOST_LARGE_POINTS else 16
    dotted = alt.OverlayMarkDef(filled=True, size=size) if points else False
    channels = ("color", "strokeDash", "shape") if points else ("color", "strokeDash")
    drawn = base.mark_line(strokeWidth=2, point=dotted).encode(**{name: looks[name] for name in channels})
    there = alt.X("x:Q", scale=across.scale(x))
    layers: list[Chart] = [drawn]
    if guides:
        called = named("guides").mark_text(align="right", baseline="bottom", dx=-4, dy=-2)
        y = alt.Y("y:Q", scale=up.scale(everything))
        layers.append(called.encode(x=there, y=y, color=looks["color"], text=alt.Text("series:N")))
    if at:
        layers.insert(0, named("at").mark_rule(color=GREY, strokeDash=[3, 3]).encode(x=there))
    return alt.layer(*layers) if len(layers) > 1 else drawn


def _places_of(
    guides: Mapping[str, float], x: np.ndarray, series: Mapping[str, Sequence[float] | np.ndarray]
) -> dict[str, Any]:
    """Return where the name of each guide stands."""
    places = [int(np.abs(x - place).argmin()) for place in guides.values()]
    heights = [float(series[name][place]) for name, place in zip(guides, places, strict=True)]
    return records(x=x[places], y=heights, series=list(guides))


@kept
def bars(
    categories: Sequence[str],
    series: Mapping[str, Sequence[float] | np.ndarray],
    *,
    across: str,
    up: Side,
    hues: Sequence[str] = PALETTE,
    height: int = HEIGHT,
) -> Chart:
    """Draw bars side by side, one a category and series.

    Shapes:
        every series: (category,)
    """
    names = list(series)
    data = records(
        category=[category for _ in names for category in categories],
        y=np.concatenate([np.asarray(series[name], dtype=float) for name in names]),
        series=[name for name in names for _ in categories],
    )
    legend = alt.Legend(title=None, orient="top", labelLimit=320) if len(names) > 1 else None
    chart = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X(
                "category:N",
                title=across,
                sort=list(categories),
                axis=alt.Axis(labelAngle=0, labelLimit=160, labelOverlap=True),
            ),
            xOffset=alt.XOffset("series:N", sort=names),
            y=alt.Y(
                "y:Q",
                title=up.title,
                scale=alt.Scale(domain=list(up.domain) if up.domain else alt.Undefined),
                axis=up.axis(np.zeros(0)),
            ),
            color=alt.Color("series:N", scale=alt.Scale(domain=names, range=list(hues[: len(names)])), legend=legend),
            tooltip=[
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("category:N", title=across),
                alt.Tooltip("y:Q", title=up.title, format=".5~g"),
            ],
        )
    )
    return _finished(chart, height)


def dots(
    groups: Sequence[str],
    values: Sequence[float] | np.ndarray,
    series: Sequence[str],
    *,
    across: str,
    up: Side,
    details: Sequence[str],
    rules: Mapping[str, float] | None = None,
    hues: Sequence[str] = PALETTE,
    height: int = HEIGHT,
) -> Chart:
    """Draw one dot a measurement above its group, the mean of each group as a tick, and levels to compare with.

    Shapes:
        groups, values, series, details: (dot,)

    Args:
        series: sets hue and shape.
        details: what the tooltip says of the dot.
        rules: heights of dashed lines by their names.
    """
    names = list(dict.fromkeys(series))
    order = list(dict.fromkeys(groups))
    data = records(group=list(groups), y=np.asarray(values, dtype=float), series=list(series), detail=list(details))
    beside = list(series) != list(groups)  # else the axis names them already
    looks = series_looks(names, hues, names if beside else [], dashed=False)
    levels = np.array([*np.asarray(values, dtype=float), *(rules or {}).values()])
    base = alt.Chart(data).encode(
        x=alt.X("group:N", title=across, sort=order, axis=alt.Axis(labelAngle=0, labelLimit=160)),
        y=alt.Y("y:Q", title=up.title, scale=up.scale(levels), axis=up.axis(levels)),
        xOffset=alt.XOffset("series:N", sort=names) if beside else alt.Undefined,
    )
    layers = [
        base.mark_point(filled=True, size=60, opacity=0.75).encode(
            color=looks["color"],
            shape=looks["shape"],
            tooltip=[alt.Tooltip("detail:N", title=" "), alt.Tooltip("y:Q", title=up.title, format=".4~g")],
        ),
        base.mark_tick(thickness=3, width=26).encode(y=alt.Y("mean(y):Q"), color=looks["color"]),
    ]
    if rules:
        marked = alt.Chart(records(y=list(rules.values()), name=list(rules)))
        layers += [
            marked.mark_rule(color=GREY, strokeDash=[5, 4]).encode(y=alt.Y("y:Q")),
            marked.mark_text(align="right", baseline="bottom", dx=-4, dy=-3, color=GREY).encode(
                y=alt.Y("y:Q"), x=alt.value("width"), text=alt.Text("name:N")
            ),
        ]
    return _finished(alt.layer(*layers), height)


def _finished(chart: Chart, height: int) -> Chart:
    return chart.properties(width="container", height=height)
