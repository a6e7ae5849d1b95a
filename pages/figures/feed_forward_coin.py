"""GELU as a coin: the tosses as dots with their running mean, and the error of the mean on two logarithmic axes.

Arrays come from transformer_core.analysis.feed_forward.bernoulli. Read next: feed_forward_neurons.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records

Words = Mapping[str, str]
KEPT, LOST, MEAN = HUES["query"], HUES["positions"], HUES["key"]
MOST_DOTS = 1_500


def _log(field: str, title: str) -> alt.X:
    return alt.X(field, title=title, scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=6))


def tosses_chart(found: Mapping[str, np.ndarray], words: Words) -> Chart:
    """Draw each toss at the number it gave, x or 0, the running mean, and GELU(x) as a rule.

    Args:
        found: kept, drawn, running_mean, x and expected.
    """
    kept, x = found["kept"], float(found["x"])
    places = np.unique(np.geomspace(1, len(kept), min(MOST_DOTS, len(kept))).round().astype(int))
    outcome = kept[places - 1]
    hue = alt.Scale(domain=[words["kept"], words["lost"]], range=[KEPT, LOST])
    dots = (
        alt.Chart(records(draw=places, y=outcome * x, kept=np.where(outcome, words["kept"], words["lost"])))
        .mark_point(filled=True, size=28, opacity=0.5)
        .encode(
            x=_log("draw:Q", words["axis_draws"]),
            y=alt.Y("y:Q", title=words["axis_outcome"], scale=alt.Scale(padding=16)),
            color=alt.Color("kept:N", scale=hue, title=None, legend=alt.Legend(orient="top")),
            shape=alt.Shape("kept:N", title=None),
            tooltip=["draw:Q", "kept:N", "y:Q"],
        )
    )
    mean = (
        alt.Chart(records(draw=found["drawn"], mean=found["running_mean"].round(6)))
        .mark_line(color=MEAN, strokeWidth=3)
        .encode(x="draw:Q", y="mean:Q", tooltip=["draw:Q", "mean:Q"])
    )
    label = records(y=[float(found["expected"])], label=[f"GELU({x:g}) = {float(found['expected']):.5f}"])
    rule = alt.Chart(label).mark_rule(strokeDash=[6, 4], color=HUES["residual"], strokeWidth=2).encode(y="y:Q")
    text = (
        alt.Chart(label)
        .mark_text(align="right", dx=-4, dy=-9, color=HUES["residual"], fontWeight="bold")
        .encode(y="y:Q", x=alt.value("width"), text="label:N")
    )
    return alt.layer(dots, rule, mean, text).properties(width="container", height=300)


def error_chart(found: Mapping[str, np.ndarray], words: Words) -> Chart:
    """Draw the error of the mean over the number of draws: over many series as dots with their line, and of this one.

    Args:
        found: sizes, root_mean_square, slope, drawn, running_mean and expected.
    """
    sizes, errors, slope = found["sizes"], found["root_mean_square"], float(found["slope"])
    fitted = np.exp(np.log(errors).mean() + slope * (np.log(sizes) - np.log(sizes).mean()))
    y = alt.Y(
        "error:Q", title=words["axis_error"], scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5)
    )
    many, one = words["series_many"], words["series_one"]
    hue = alt.Scale(domain=[many, one], range=[MEAN, HUES["residual"]])
    colour = alt.Color("of:N", scale=hue, title=None, legend=alt.Legend(orient="top", labelLimit=400))
    own = np.abs(found["running_mean"] - found["expected"])
    there = (own > 0) & (found["drawn"] >= sizes[0])
    series = (
        alt.Chart(records(draws=found["drawn"][there], error=own[there], of=[one] * int(there.sum())))
        .mark_line(strokeWidth=1.2, opacity=0.8)
        .encode(x=_log("draws:Q", words["axis_draws"]), y=y, color=colour)
    )
    line = (
        alt.Chart(records(draws=sizes, error=fitted)).mark_line(color=MEAN, strokeDash=[5, 4]).encode(x="draws:Q", y=y)
    )
    dots = (
        alt.Chart(records(draws=sizes, error=errors, of=[many] * len(sizes)))
        .mark_point(filled=True, size=80)
        .encode(x="draws:Q", y=y, color=colour, tooltip=["draws:Q", alt.Tooltip("error:Q", format=".3e")])
    )
    return alt.layer(series, line, dots).properties(width="container", height=300)
