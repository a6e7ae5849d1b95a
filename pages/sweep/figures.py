"""The figures of a sweep: means in a grid, curves with the band that the seeds leave, runs as parallel coordinates.

Arrays come from transformer_core.training.runs.sweep.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import PALETTE, Chart, dashes_of, records
from pages.figures.curves import GREY
from pages.figures.forms import Filled, form, named

CELL, ROOM = 54, 70  # pixels of a row of the grid, and of its axis and title
CURVES_HEIGHT, COORDINATES_HEIGHT = 320, 300
PANEL, LAST_PANEL, ABOVE = 205, 150, 0.08  # widths in pixels, and room beyond the ends of an axis, as a part of it


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
    drawn = _grid(tuple(rows), tuple(columns), words, format, round(middle, 6))
    return Filled(drawn, {"cells": cells}, ROOM + CELL * len(rows))


@form
def _grid(
    rows: tuple[str, ...], columns: tuple[str, ...], words: Mapping[str, str], format: str, middle: float
) -> Chart:
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
    drawn = _bands(tuple(dict.fromkeys(first)), tuple(dict.fromkeys(second)), words, format)
    return Filled(drawn, {"bands": records(**columns)}, CURVES_HEIGHT)


@form
def _bands(first: tuple[str, ...], second: tuple[str, ...], words: Mapping[str, str], format: str) -> Chart:
    several = len(second) > 1
    color = alt.Color(
        "first:N",
        scale=alt.Scale(domain=list(first), range=list(PALETTE[: len(first)])),
        legend=alt.Legend(title=words["first"], orient="top"),
    )
    dash = alt.StrokeDash(
        "second:N",
        scale=dashes_of(second),
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
        percent: its numbers are shares.
    """

    title: str
    places: Sequence[float]
    ticks: Sequence[str] = ()
    percent: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The places of its two ends, which differ."""
        low, high = (0.0, len(self.ticks) - 1.0) if self.ticks else (min(self.places), max(self.places))
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def written(self, place: float) -> str:
        """Return the word or number at a place."""
        if self.ticks:
            return self.ticks[round(place)]
        return f"{place:.1%}" if self.percent else f"{place:.3f}"


def coordinates(axes: Sequence[Axis], names: Sequence[str]) -> Chart:
    """Draw a line a run through parallel axes, coloured by the last; any axis can be brushed, several together.

    One panel lies between two axes and is brushed by the left of them: Vega keeps one brush a panel. (Plotly's own
    parallel coordinates make code of words, which the app's Content-Security-Policy does not allow.)

    Args:
        names: of the runs.
    """
    columns: dict[str, list] = {"run": list(names), "value": list(axes[-1].places)}
    for number, axis in enumerate(axes):
        low, high = axis.ends
        columns[f"at_{number}"] = [(place - low) / (high - low) for place in axis.places]
        columns[f"word_{number}"] = [axis.written(place) for place in axis.places]
    data = records(**columns)
    brushes = [alt.selection_interval(name=f"axis_{number}", encodings=["y"]) for number in range(len(axes))]
    kept = brushes[0]
    for brush in brushes[1:]:
        kept = kept & brush  # type: ignore[assignment]
    color = alt.Color("value:Q", scale=alt.Scale(scheme="viridis"), legend=None)
    opacity = alt.condition(kept, alt.value(0.9), alt.value(0.06))
    tooltip = [alt.Tooltip(f"word_{number}:N", title=axis.title) for number, axis in enumerate(axes)]
    tooltip.insert(0, alt.Tooltip("run:N", title=" "))
    return alt.hconcat(
        *(_panel(axes, number, data, brush, [color, opacity, tooltip]) for number, brush in enumerate(brushes)),
        spacing=0,
    )


def _panel(axes: Sequence[Axis], number: int, data: Any, brush: Any, looks: list[Any]) -> Chart:
    """Draw the lines from one axis to the next, with the axis; the last panel has its axis and the runs' ends on it."""
    axis, last = axes[number], number == len(axes) - 1
    low, high = axis.ends
    scale = alt.Scale(domain=[-ABOVE, 1 + ABOVE], nice=False)
    y = alt.Y(f"at_{number}:Q", scale=scale, axis=None)
    color, opacity, tooltip = looks
    base = alt.Chart(data)
    width = LAST_PANEL if last else PANEL
    if last:
        lines = base.mark_circle(size=70).encode(x=alt.value(0), y=y, color=color, opacity=opacity, tooltip=tooltip)
    else:
        lines = base.mark_rule(strokeWidth=2).encode(
            x=alt.value(0), x2=alt.value(width), y=y, y2=alt.Y2(f"at_{number + 1}:Q"),
            color=color, opacity=opacity, tooltip=tooltip,
        )  # fmt: skip
    places = list(range(len(axis.ticks))) if axis.ticks else [low, (low + high) / 2, high]
    ticks = alt.Chart(
        records(at=[(place - low) / (high - low) for place in places], word=[axis.written(place) for place in places])
    )
    pole = alt.Chart(records(low=[0.0], high=[1.0])).mark_rule(strokeWidth=1.5, color=GREY)
    there = alt.Y("at:Q", scale=scale, axis=None)
    layers = [
        lines.add_params(brush),
        pole.encode(x=alt.value(0), y=alt.Y("low:Q", scale=scale, axis=None), y2=alt.Y2("high:Q")),
        ticks.mark_text(align="left", dx=7, dy=-8, fontSize=12, color=GREY).encode(
            x=alt.value(0), y=there, text=alt.Text("word:N")
        ),
    ]
    title = alt.Title(axis.title, anchor="start", fontSize=13, limit=width - 8)
    return alt.layer(*layers, title=title).properties(width=width, height=COORDINATES_HEIGHT)
