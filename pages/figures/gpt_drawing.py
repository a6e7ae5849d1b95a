"""Drawing: how often each token came in many draws, beside how often it should; and what a cache saves.

Arrays come from transformer_core.analysis.gpt. Read next: gpt_lens.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, PALETTE, Chart, records
from pages.figures.gpt import CHANCE, REST, ROOM, distinct


def draws_bars(
    labels: Sequence[str],
    chances: np.ndarray,
    counts: np.ndarray,
    spread: np.ndarray,
    words: Mapping[str, str],
) -> Chart:
    """Draw the counts as bars, and over each the expected count with two standard deviations either way.

    Shapes:
        chances, counts, spread: (top + 1,), the last of all other tokens

    Args:
        words: count, counted, due, rest.
    """
    names = [*distinct(labels), words["rest"]]
    draws = counts.sum()
    due = chances * draws
    low, high = (due - 2 * spread).clip(0.0), due + 2 * spread
    data = records(
        token=names, count=counts, due=due.round(2), low=low.round(2), high=high.round(2), chance=chances.round(6)
    )
    top = float(max(counts.max(), high.max())) * 1.08
    base = alt.Chart(data).encode(
        y=alt.Y(
            "token:N",
            sort=None,
            scale=alt.Scale(domain=names),
            title=None,
            axis=alt.Axis(labelFont="monospace", labelFontSize=13, labelLimit=220, labelOverlap=False, ticks=False),
        ),
        tooltip=[
            "token:N",
            alt.Tooltip("count:Q", title=words["counted"]),
            alt.Tooltip("due:Q", title=words["due"]),
            alt.Tooltip("chance:Q", format=".3%"),
        ],
    )
    across = alt.Scale(domain=[0, top])
    bars = base.mark_bar(color=CHANCE, opacity=0.55, cornerRadiusEnd=2).encode(
        x=alt.X("count:Q", title=words["count"], scale=across)
    )
    band = base.mark_rule(strokeWidth=2, color=HUES["residual"]).encode(x="low:Q", x2="high:Q")
    tick = base.mark_tick(thickness=3, size=16, color=PALETTE[4]).encode(x="due:Q")
    return alt.layer(bars, band, tick).properties(width="container", height=ROOM + 26 * len(names))


def cache_curves(lengths: np.ndarray, plain: np.ndarray, cached: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw the time of one more token over the tokens read so far, without a cache and with it.

    Shapes:
        lengths, plain, cached: (length,), times in seconds

    Args:
        words: length, milliseconds, plain, cached.
    """
    names = [words["plain"], words["cached"]]
    data = records(
        length=np.tile(lengths, 2),
        ms=(1_000 * np.concatenate([plain, cached])).round(4),
        way=np.repeat(names, len(lengths)).tolist(),
    )
    return (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2.5)
        .encode(
            x=alt.X("length:Q", title=words["length"], scale=alt.Scale(nice=False)),
            y=alt.Y("ms:Q", title=words["milliseconds"], scale=alt.Scale(zero=True)),
            color=alt.Color(
                "way:N",
                title=None,
                scale=alt.Scale(domain=names, range=[REST, CHANCE]),
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
            strokeDash=alt.StrokeDash("way:N", scale=alt.Scale(domain=names, range=[list(d) for d in DASHES[:2]])),
            tooltip=["way:N", "length:Q", alt.Tooltip("ms:Q", format=".2f", title=words["milliseconds"])],
        )
        .properties(width="container", height=280)
    )
