"""A model's parameters by part, as bars."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records
from pages.figures.forms import kept

PART_HUES = {
    "embeddings": HUES["residual"],
    "attention": HUES["weights"],
    "feed_forward": PALETTE[5],
    "norms": PALETTE[7],
    "gates": PALETTE[4],
    "heads": HUES["query"],
}
HEIGHT_OF_BAR = 34


@kept
def parts_chart(parts: Sequence[str], counts: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw how many parameters each part has, the largest on top.

    Shapes:
        counts: (part,)

    Args:
        parts: keys of PART_HUES.
        words: part_NAME for each, axis_parameters and axis_share.
    """
    names = [words[f"part_{part}"] for part in parts]
    shares = counts / counts.sum()
    said = [f"{count:,} · {share:.1%}" for count, share in zip(counts.tolist(), shares.tolist(), strict=True)]
    data = records(part=names, count=counts, share=shares, said=said)
    y = alt.Y("part:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, ticks=False, domain=False))
    x = alt.X(
        "count:Q",
        title=words["axis_parameters"],
        scale=alt.Scale(domain=[0, 1.3 * float(counts.max())]),
        axis=alt.Axis(format="~s", tickCount=6),
    )
    hue = alt.Color(
        "part:N", scale=alt.Scale(domain=names, range=[PART_HUES[part] for part in parts]), legend=None, sort=None
    )
    tooltip = [
        alt.Tooltip("part:N", title=" "),
        alt.Tooltip("count:Q", title=words["axis_parameters"], format=","),
        alt.Tooltip("share:Q", title=words["axis_share"], format=".2%"),
    ]
    base = alt.Chart(data).encode(x=x, y=y, tooltip=tooltip)
    bars = base.mark_bar(cornerRadiusEnd=3).encode(color=hue)
    text = base.mark_text(align="left", dx=6, fontSize=12, color="#8a8396").encode(text=alt.Text("said:N"))
    return alt.layer(bars, text).properties(width="container", height=HEIGHT_OF_BAR * len(parts) + 10)
