"""The maps of one frame, fitted afresh and aligned, and how far points move from frame to frame.

Arrays come from transformer_core.analysis.refitted_maps.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import PALETTE, Chart, records
from pages.figures.curves import Side, curves
from pages.figures.forms import Filled
from pages.film.figures.film import LIGHT

MAP_HEIGHT, MOVES_HEIGHT = 470, 280
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
