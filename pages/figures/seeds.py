"""One dot a seed: what runs of several settings came to, their mean and its interval."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records
from pages.figures.forms import Filled, form, named

ROW, ROOM = 30, 60  # pixels of a row, and of the axis below


def seeds_chart(
    names: Sequence[str],
    values: np.ndarray,
    words: Mapping[str, str],
    *,
    bounds: np.ndarray | None = None,
    format: str = ".3f",
) -> Filled:
    """Draw each run as a dot, the mean of its row as a tick, and the interval of the mean as a line.

    Shapes:
        values: (row, seed); nan where there is none
        bounds: (row, 2), low and high of the mean; nan where there are none

    Args:
        names: of the rows, from the top.
        words: value, seed, mean, interval: titles.
        format: of the values, in d3's notation.
    """
    there = ~np.isnan(values)
    rows, seeds = np.nonzero(there)
    dots = records(name=[names[row] for row in rows.tolist()], value=values[there].round(6), seed=seeds)
    filled = np.flatnonzero(there.any(1)).tolist()
    means = records(name=[names[row] for row in filled], value=[float(np.nanmean(values[row])) for row in filled])
    data = {"dots": dots, "means": means}
    if bounds is not None:
        known = np.flatnonzero(~np.isnan(bounds).any(-1)).tolist()
        data["bounds"] = records(name=[names[row] for row in known], low=bounds[known, 0], high=bounds[known, 1])
    drawn = _seeds(tuple(names), words, bounds is not None, format)
    return Filled(drawn, data, ROOM + ROW * len(names))


@form
def _seeds(names: tuple[str, ...], words: Mapping[str, str], with_bounds: bool, format: str) -> Chart:
    up = alt.Y("name:N", sort=None, scale=alt.Scale(domain=list(names)), title=None, axis=alt.Axis(labelLimit=320))
    scale = alt.Scale(zero=False, padding=14)
    axis = alt.Axis(tickCount=8, labelOverlap=True, format=format if "%" in format else alt.Undefined)
    across = alt.X("value:Q", title=words["value"], scale=scale, axis=axis)
    number = alt.Tooltip("value:Q", title=words["value"], format=format)
    dot = [alt.Tooltip("name:N"), alt.Tooltip("seed:Q", title=words["seed"]), number]
    dots = named("dots").mark_circle(size=70, opacity=0.75, color=PALETTE[0]).encode(x=across, y=up, tooltip=dot)
    ticks = named("means").mark_tick(thickness=3, size=20, color=HUES["positions"])
    layers = [ticks.encode(x=across, y=up, tooltip=[alt.Tooltip("name:N"), number]), dots]
    if with_bounds:
        ends = [alt.Tooltip(f"{end}:Q", title=words["interval"], format=format) for end in ("low", "high")]
        line = named("bounds").mark_rule(strokeWidth=2, opacity=0.6, color=HUES["positions"])
        layers.insert(0, line.encode(x=alt.X("low:Q", scale=scale), x2="high", y=up, tooltip=ends))
    return alt.layer(*layers)
