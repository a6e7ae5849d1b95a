"""The axes and legends of the Why? page's charts: linear and logarithmic sides, hues with shapes.

Read next: why.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import DASHES
from pages.figures.log_axis import LABELS

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
