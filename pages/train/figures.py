"""The maps of one frame, fitted afresh and aligned, and how far points move from frame to frame; a range test.

Arrays come from transformer_core.analysis.refitted_maps and transformer_core.training.range_test.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import PALETTE, Chart, records
from pages.figures.curves import GREY, Side, curves
from pages.figures.forms import Filled
from pages.film.figures.film import LIGHT

MAP_HEIGHT, MOVES_HEIGHT, RANGE_HEIGHT = 470, 280, 330
HEADROOM = 0.5  # above the first mean, as a part of the fall; what lies beyond is cut off
SHAPES = ("circle", "diamond")
ROOM = 1.04  # around the furthest point of all frames


def map_chart(
    xy: np.ndarray,
    labels: np.ndarray,
    held_out: np.ndarray,
    classes: Sequence[str],
    said: Mapping[str, str],
    *,
    reach: float,
) -> Chart:
    """Draw one map; its axes hold all frames, so that what moves moved in the map.

    Shapes:
        xy: (point, 2); labels, held_out: (point,)

    Args:
        classes: names of the labels.
        said: train, held_out, class, part.
        reach: the furthest coordinate from 0 over all frames of all maps.
    """
    parts = (said["train"], said["held_out"])
    data = records(
        x=xy[:, 0].astype(float),
        y=xy[:, 1].astype(float),
        label=[classes[label] for label in labels.tolist()],
        part=[parts[int(held)] for held in held_out.tolist()],
    )
    scale = alt.Scale(domain=[-reach * ROOM, reach * ROOM], nice=False)
    bare = alt.Axis(labels=False, ticks=False, title=None, grid=False)
    legend = alt.Legend(title=None, orient="top")
    return (
        alt.Chart(data)
        .mark_point(filled=True, size=30, opacity=0.7, stroke=None)
        .encode(
            x=alt.X("x:Q", scale=scale, axis=bare),
            y=alt.Y("y:Q", scale=scale, axis=bare),
            color=alt.Color(
                "label:N", scale=alt.Scale(domain=list(classes), range=list(LIGHT[: len(classes)])), legend=legend
            ),
            shape=alt.Shape("part:N", scale=alt.Scale(domain=list(parts), range=list(SHAPES)), legend=legend),
            tooltip=[alt.Tooltip("label:N", title=said["class"]), alt.Tooltip("part:N", title=said["part"])],
        )
        .properties(width="container", height=MAP_HEIGHT)
    )


def reach_of(*maps: np.ndarray) -> float:
    """Return the furthest coordinate from 0 of any point, at least 1."""
    return max(1.0, *(float(np.abs(xy).max()) for xy in maps))


def moves_chart(
    steps: np.ndarray,
    aligned: np.ndarray,
    refitted: np.ndarray,
    turned: np.ndarray,
    said: Mapping[str, str],
    *,
    at: float,
) -> Filled:
    """Draw how far points moved since the frame before, with a rule at the frame shown.

    Shapes:
        steps, aligned, refitted, turned: (frame,)

    Args:
        said: step, moved, aligned, refitted, turned.
        at: the step of the frame shown.
    """
    series = {said["refitted"]: refitted, said["turned"]: turned, said["aligned"]: aligned}
    highest = max(float(np.nanmax(values)) for values in series.values())
    return curves(
        steps,
        series,
        across=Side(said["step"]),
        up=Side(said["moved"], domain=(0.0, max(highest, 0.1) * 1.05)),
        at=at,
        hues=(PALETTE[4], PALETTE[1], PALETTE[0]),
        height=MOVES_HEIGHT,
    )


def range_chart(
    rates: np.ndarray,
    losses: np.ndarray,
    smoothed: np.ndarray,
    marks: Mapping[str, float],
    said: Mapping[str, str],
) -> Chart:
    """Draw the loss against the learning rate, on a logarithmic axis, with its means and a rule at each named rate.

    Shapes:
        rates, losses, smoothed: (place,)

    Args:
        marks: rates by what stands at them.
        said: rate, loss, batch, mean.
    """
    there = np.isfinite(smoothed)
    means = smoothed[there]
    low = float(min(means.min(), np.quantile(losses, 0.01)))
    high = float(max(means[0], np.quantile(losses[: losses.size // 4 + 1], 0.99)))
    across, up = Side(said["rate"], log=True), Side(said["loss"])
    x = alt.X("x:Q", title=across.title, scale=across.scale(rates), axis=across.axis(rates))
    scale = alt.Scale(domain=[low, high + HEADROOM * (high - low)], nice=False, zero=False)
    y = alt.Y("y:Q", title=up.title, scale=scale)
    names = [said["batch"], said["mean"]]
    hue = alt.Color(
        "series:N",
        scale=alt.Scale(domain=names, range=[GREY, PALETTE[0]]),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolOpacity=1.0),
    )
    tooltip = [
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("x:Q", title=said["rate"], format=".3~g"),
        alt.Tooltip("y:Q", title=said["loss"], format=".4~g"),
    ]

    def line(name: str, values: np.ndarray, kept: np.ndarray, width: float, opacity: float) -> Chart:
        data = records(x=rates[kept], y=values[kept].astype(float), series=[name] * int(kept.sum()))
        drawn_line = alt.Chart(data).mark_line(strokeWidth=width, opacity=opacity, clip=True)
        return drawn_line.encode(x=x, y=y, color=hue, tooltip=tooltip)

    layers = [
        line(names[0], losses, np.ones_like(there), 1, 0.45),
        line(names[1], smoothed, there, 2.5, 1.0),
    ]
    if marks:
        rules = alt.Chart(records(x=list(marks.values()), name=list(marks), dy=[float(i) for i in range(len(marks))]))
        placed = alt.X("x:Q", scale=across.scale(rates))
        layers.append(rules.mark_rule(strokeDash=[4, 3], color=GREY).encode(x=placed))
        for number, (name, rate) in enumerate(marks.items()):
            right = bool(np.log(rate / rates[0]) > 0.8 * np.log(rates[-1] / rates[0]))
            word = alt.Chart(records(x=[rate], name=[name])).mark_text(
                align="right" if right else "left",
                baseline="top",
                dx=-5 if right else 5,
                dy=2 + 16 * number,
                color=GREY,
            )
            layers.append(word.encode(x=placed, y=alt.value(0), text=alt.Text("name:N")))
    return alt.layer(*layers).properties(width="container", height=RANGE_HEIGHT)
