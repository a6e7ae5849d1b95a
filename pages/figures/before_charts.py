"""What a recurrent reader does word by word, as bars: what it keeps, what is left at the end, how far slopes reach.

Arrays come from transformer_core.analysis.before. Read next: bert.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.before import numbered
from pages.figures.charts import HUES, Chart, records

LINE, FOOT = 22, 56  # px: of a bar with its gap, and of the axis below
MOST_UPRIGHT = 40
HUES_OF_SERIES = (HUES["query"], HUES["positions"])


def kept_bars(tokens: Sequence[str], kept: np.ndarray, said: Mapping[str, str]) -> Chart:
    """Draw how much of its state a reader keeps at each word, one line a word from the top.

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
    """Draw one bar a word and series, side by side.

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
