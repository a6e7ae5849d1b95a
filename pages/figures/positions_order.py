"""What order is worth as figures: one measure under each treatment, with every shuffle as a point.

Arrays come from transformer_core.analysis.positions.order_worth. Read next: matrix.py.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.positions import Words

ALIKE = ("kept", "positions_removed")  # the same whatever the seed


def order_chart(
    values: np.ndarray, treatments: Sequence[str], words: Words, *, axis: str, whole: bool = False, title: str = ""
) -> Chart:
    """Draw the mean of each treatment as a bar, its least and greatest as a whisker, and each seed as a point.

    Args:
        values: (treatment, seed).
        treatments: names, which words translates as treatment_NAME.
        axis: what the values are.
        whole: the axis runs from 0 to 1.
        title: printed above.
    """
    names = [words[f"treatment_{treatment}"] for treatment in treatments]
    means = values.mean(1)
    bars = records(
        treatment=names,
        mean=means.round(6),
        least=values.min(1).round(6),
        most=values.max(1).round(6),
        label=[f"{mean:.3f}" for mean in means],
    )
    seeds = [1 if treatment in ALIKE else values.shape[1] for treatment in treatments]
    points = records(
        treatment=[name for name, count in zip(names, seeds, strict=True) for _ in range(count)],
        value=[round(float(x), 6) for row, count in zip(values, seeds, strict=True) for x in row[:count]],
    )
    scale = alt.Scale(domain=[0, 1]) if whole else alt.Scale()
    x = alt.X("treatment:N", sort=names, title=None, axis=alt.Axis(labelAngle=-20, labelLimit=180, labelOverlap=False))
    base = alt.Chart(bars)
    hue = alt.Color(
        "treatment:N",
        legend=None,
        scale=alt.Scale(domain=names, range=[HUES["residual"], HUES["positions"], HUES["key"], HUES["query"]]),
    )
    drawn = base.mark_bar(size=34, opacity=0.75).encode(
        x=x,
        y=alt.Y("mean:Q", title=axis, scale=scale),
        color=hue,
        tooltip=["treatment:N", "mean:Q", "least:Q", "most:Q"],
    )
    whisker = base.mark_rule(strokeWidth=2, color="#8a8a8a").encode(x=x, y="least:Q", y2="most:Q")
    figures = base.mark_text(dy=-8, dx=26).encode(x=x, y="mean:Q", text="label:N")
    dots = (
        alt.Chart(points)
        .mark_point(size=22, filled=False, color="#7a7a7a")
        .encode(x=x, y="value:Q", tooltip=["treatment:N", "value:Q"])
    )
    return alt.layer(drawn, whisker, dots, figures).properties(width="container", height=340, title=title)
