"""One score as the sum of its products, dimension by dimension.

Arrays come from transformer_core.analysis.bert.tied_output. Read next: bert_recipe.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.gpt import REST

Words = Mapping[str, str]
MOST_BARS = 24


def products_chart(products: np.ndarray, bias: float, words: Words) -> Chart:
    """Draw the running sum of the products, the largest first, then all others as one, then the bias.

    Shapes:
        products: (d_model,)

    Args:
        words: axis_dimension, axis_score, others, bias, adds, takes, total.
    """
    order = np.argsort(-np.abs(products), kind="stable")
    shown = order[:MOST_BARS]
    steps = [float(products[dimension]) for dimension in shown]
    names = [str(dimension) for dimension in shown]
    if len(order) > len(shown):
        names.append(words["others"].format(count=len(order) - len(shown)))
        steps.append(float(products[order[MOST_BARS:]].sum()))
    names, steps = [*names, words["bias"]], [*steps, float(bias)]
    ends = np.cumsum(steps)
    data = records(
        step=names,
        low=(ends - steps).tolist(),
        high=ends.tolist(),
        value=steps,
        kind=[words["adds"] if step >= 0 else words["takes"] for step in steps],
    )
    hue = alt.Scale(domain=[words["adds"], words["takes"]], range=[HUES["value"], HUES["key"]])
    across = alt.X(
        "step:N",
        sort=None,
        scale=alt.Scale(domain=names),
        title=words["axis_dimension"],
        axis=alt.Axis(labelAngle=-45, labelLimit=140, labelOverlap=False, ticks=False),
    )
    bars = (
        alt.Chart(data)
        .mark_bar(cornerRadius=2)
        .encode(
            x=across,
            y=alt.Y("low:Q", title=words["axis_score"]),
            y2="high:Q",
            color=alt.Color("kind:N", scale=hue, title=None, legend=alt.Legend(orient="top")),
            tooltip=["step:N", alt.Tooltip("value:Q", format="+.5f"), alt.Tooltip("high:Q", format="+.5f")],
        )
    )
    end = alt.Chart(records(high=[float(ends[-1])], label=[words["total"].format(total=f"{ends[-1]:+.4f}")]))
    rule = end.mark_rule(color=HUES["weights"], strokeDash=[5, 4]).encode(y="high:Q")
    text = end.mark_text(align="left", dx=4, dy=-8, color=HUES["weights"], fontSize=12).encode(
        y="high:Q", x=alt.value(0), text="label:N"
    )
    zero = alt.Chart(records(high=[0.0])).mark_rule(color=REST).encode(y="high:Q")
    return alt.layer(zero, bars, rule, text).properties(width="container", height=360)
