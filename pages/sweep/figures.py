"""The figures of a sweep: means in a grid, curves with the band that the seeds leave, runs as parallel coordinates.

Arrays come from transformer_core.training.runs.sweep.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import plotly.graph_objects as go

from pages.figures.charts import DASHES, PALETTE, Chart, records
from pages.figures.forms import Filled, form, named

CELL, ROOM = 54, 70  # pixels of a row of the grid, and of its axis and title
CURVES_HEIGHT, COORDINATES_HEIGHT = 320, 380


def grid_chart(
    rows: Sequence[str],
    columns: Sequence[str],
    means: np.ndarray,
    counts: np.ndarray,
    words: Mapping[str, str],
    *,
    format: str,
) -> Filled:
    """Draw the mean of each combination of two settings as a coloured cell with its number.

    Shapes:
        means, counts: (row, column); a mean of no run is nan

    Args:
        words: rows, columns (the settings), value, seeds: titles.
        format: of the means, in d3's notation.
    """
    there = ~np.isnan(means)
    down, across = np.nonzero(there)
    cells = records(
        down=[rows[one] for one in down.tolist()],
        across=[columns[one] for one in across.tolist()],
        value=means[there],
        seeds=counts[there],
    )
    good = means[there]
    middle = float((good.min() + good.max()) / 2) if good.size else 0.0
    drawn = _grid(tuple(rows), tuple(columns), tuple(words.items()), format, round(middle, 6))
    return Filled(drawn, {"cells": cells}, ROOM + CELL * len(rows))


@form
def _grid(
    rows: tuple[str, ...], columns: tuple[str, ...], said: tuple[tuple[str, str], ...], format: str, middle: float
) -> Chart:
    words = dict(said)
    y = alt.Y("down:N", title=words["rows"], sort=None, scale=alt.Scale(domain=list(rows)))
    x = alt.X(
        "across:N",
        title=words["columns"],
        sort=None,
        scale=alt.Scale(domain=list(columns)),
        axis=alt.Axis(labelAngle=0),
    )
    legend = alt.Legend(title=None, format=format)
    color = alt.Color("value:Q", scale=alt.Scale(scheme="blues", zero=False), legend=legend)
    tooltip = [
        alt.Tooltip("down:N", title=words["rows"]),
        alt.Tooltip("across:N", title=words["columns"]),
        alt.Tooltip("value:Q", title=words["value"], format=format),
        alt.Tooltip("seeds:Q", title=words["seeds"]),
    ]
    base = named("cells").encode(x=x, y=y, tooltip=tooltip)
    ink = alt.condition(alt.datum.value > middle, alt.value("white"), alt.value("#223"))
    number = base.mark_text(fontSize=14).encode(text=alt.Text("value:Q", format=format), color=ink)
    return alt.layer(base.mark_rect().encode(color=color), number)


def bands_chart(
    curves: Sequence[np.ndarray],
    first: Sequence[str],
    second: Sequence[str],
    words: Mapping[str, str],
    *,
    format: str,
) -> Filled:
    """Draw a curve a combination: the mean over its seeds, in the band from the least to the greatest.

    Shapes:
        curves: of each combination (frame, 1 + seed), the step and each seed's value; nan where it is not there

    Args:
        first, second: the values of both settings, of each combination; of one setting, second is empty words.
        words: first, second (the settings), step, value: titles.
    """
    columns: dict[str, list] = {name: [] for name in ("step", "low", "high", "mean", "first", "second")}
    for curve, one, other in zip(curves, first, second, strict=True):
        for step, *values in curve.tolist():
            there = [value for value in values if not np.isnan(value)]
            if there:
                row = (step, min(there), max(there), sum(there) / len(there), one, other)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    drawn = _bands(tuple(dict.fromkeys(first)), tuple(dict.fromkeys(second)), tuple(words.items()), format)
    return Filled(drawn, {"bands": records(**columns)}, CURVES_HEIGHT)


@form
def _bands(first: tuple[str, ...], second: tuple[str, ...], said: tuple[tuple[str, str], ...], format: str) -> Chart:
    words, several = dict(said), len(second) > 1
    color = alt.Color(
        "first:N",
        scale=alt.Scale(domain=list(first), range=list(PALETTE[: len(first)])),
        legend=alt.Legend(title=words["first"], orient="top"),
    )
    dashes = [list(dash) for dash in DASHES[: len(second)]]
    dash = alt.StrokeDash(
        "second:N",
        scale=alt.Scale(domain=list(second), range=dashes),
        legend=alt.Legend(title=words["second"], orient="top", symbolType="stroke") if several else None,
    )
    x = alt.X("step:Q", title=words["step"], axis=alt.Axis(grid=False, tickCount=8))
    scale = alt.Scale(zero=False)
    tooltip = [alt.Tooltip("first:N", title=words["first"])]
    tooltip += [alt.Tooltip("second:N", title=words["second"])] if several else []
    tooltip += [alt.Tooltip("step:Q", title=words["step"]), alt.Tooltip("mean:Q", title=words["value"], format=format)]
    base = named("bands").encode(x=x, color=color, detail=alt.Detail("second:N"))
    y, top = alt.Y("low:Q", title=words["value"], scale=scale, axis=alt.Axis(format=format)), alt.Y2("high")
    band = base.mark_area(opacity=0.18).encode(y=y, y2=top)
    line = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=18)).encode(
        y=alt.Y("mean:Q", title=words["value"], scale=scale), strokeDash=dash, tooltip=tooltip
    )
    return alt.layer(band, line)


@dataclass(frozen=True)
class Axis:
    """One axis of parallel coordinates.

    Args:
        title: above it.
        places: of each run on it.
        ticks: names of the places 0, 1 and so on; none where it is an axis of numbers.
        format: of its numbers, in d3's notation.
    """

    title: str
    places: Sequence[float]
    ticks: Sequence[str] = ()
    format: str = ""


def coordinates(axes: Sequence[Axis]) -> go.Figure:
    """Draw a line a run through parallel axes, coloured by the last; a person may brush any axis and move it."""
    dimensions = []
    for axis in axes:
        dimension: dict[str, object] = {"label": axis.title, "values": list(axis.places)}
        if axis.ticks:
            most = len(axis.ticks) - 1
            dimension |= {"tickvals": list(range(most + 1)), "ticktext": list(axis.ticks)}
            dimension |= {"range": [-0.15, most + 0.15]}
        else:
            dimension |= {"tickformat": axis.format}
        dimensions.append(dimension)
    values = list(axes[-1].places)
    line = {"color": values, "colorscale": "Viridis", "cmin": min(values), "cmax": max(values), "showscale": False}
    figure = go.Figure(go.Parcoords(dimensions=dimensions, line=line, labelfont={"size": 14}, tickfont={"size": 13}))
    figure.update_layout(height=COORDINATES_HEIGHT, margin={"l": 90, "r": 70, "t": 70, "b": 30}, uirevision="sweep")
    return figure
