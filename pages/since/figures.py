"""The figure of the page on what changed since 2017: what the models of the ladder came to, a dot a seed."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records
from pages.figures.forms import Filled, form, named

ROW, ROOM = 30, 60  # pixels of a rung, and of the axis below


def ladder_chart(names: Sequence[str], nats: np.ndarray, words: Mapping[str, str]) -> Filled:
    """Draw each model's loss as a dot, and the mean of its rung as a tick.

    Shapes:
        nats: (rung, seed)

    Args:
        names: of the rungs, from the lowest; it stands on top.
        words: nats, seed, mean.
    """
    seeds = nats.shape[1]
    dots = records(
        rung=np.repeat(names, seeds).tolist(), nats=nats.ravel().round(4), seed=np.tile(np.arange(seeds), len(names))
    )
    means = records(rung=list(names), nats=nats.mean(1).round(4))
    return Filled(_ladder(tuple(names), tuple(words.items())), {"dots": dots, "means": means}, ROOM + ROW * len(names))


@form
def _ladder(names: tuple[str, ...], said: tuple[tuple[str, str], ...]) -> Chart:
    words = dict(said)
    up = alt.Y("rung:N", sort=None, scale=alt.Scale(domain=list(names)), title=None, axis=alt.Axis(labelLimit=320))
    scale, axis = alt.Scale(zero=False, padding=14), alt.Axis(tickCount=8, labelOverlap=True)
    across = alt.X("nats:Q", title=words["nats"], scale=scale, axis=axis)
    number = alt.Tooltip("nats:Q", title=words["nats"], format=".3f")
    dot, mean = (
        [*(alt.Tooltip("rung:N"), alt.Tooltip("seed:Q", title=words["seed"])), number],
        [alt.Tooltip("rung:N"), number],
    )
    dots = named("dots").mark_circle(size=70, opacity=0.75, color=PALETTE[0]).encode(x=across, y=up, tooltip=dot)
    ticks = named("means").mark_tick(thickness=3, size=20, color=HUES["positions"]).encode(x=across, y=up, tooltip=mean)
    return alt.layer(ticks, dots)
