"""The encoder page's bars: products of the last sum, what each token is worth, and the reliability diagram.

Arrays come from transformer_core.analysis.encoder. Read next: encoder_matrices.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records

HEIGHT = 330
MOST_NAMED = 48


def product_bars(products: np.ndarray, bias: float, words: Mapping[str, str]) -> Chart:
    """Draw every product of the sum, the greatest first, and the bias in its place among them.

    Shapes:
        products: (d_model,)

    Args:
        words: coordinates, coordinate, product, above, below, bias_name.
    """
    names = [str(place) for place in range(len(products))] + [words["bias_name"]]
    values = np.append(products, bias)
    order = np.argsort(-values, kind="stable")
    does = [words["above"] if value >= 0 else words["below"] for value in values[order].tolist()]
    data = records(place=np.arange(1, len(values) + 1), name=[names[i] for i in order], value=values[order], does=does)
    sides = [words["above"], words["below"]]
    return (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X("place:O", title=words["coordinates"], axis=alt.Axis(labels=False, ticks=False)),
            y=alt.Y("value:Q", title=words["product"], axis=alt.Axis(minExtent=44)),
            color=alt.Color(
                "does:N",
                title=None,
                scale=alt.Scale(domain=sides, range=[PALETTE[5], HUES["residual"]]),
                legend=alt.Legend(orient="top", direction="horizontal"),
            ),
            tooltip=[
                alt.Tooltip("name:N", title=words["coordinate"]),
                alt.Tooltip("value:Q", format="+.4f", title=words["product"]),
            ],
        )
        .properties(width="container", height=HEIGHT)
    )


def running_line(running: np.ndarray, needed: int, words: Mapping[str, str]) -> Chart:
    """Draw the sum as it grows from the bias, product after product, and where its sign is settled.

    Shapes:
        running: (d_model + 1,)

    Args:
        needed: after how many products the sign is the last one's for good.
        words: added, sum, settled_at.
    """
    data = records(added=np.arange(len(running)), value=running)
    up = alt.Y("value:Q", title=words["sum"], axis=alt.Axis(minExtent=44))
    across = alt.X("added:Q", title=words["added"], scale=alt.Scale(domain=[0, len(running) - 1], nice=False))
    line = alt.Chart(data).mark_line(color=HUES["residual"], strokeWidth=2.5, interpolate="step-after")
    line = line.encode(x=across, y=up, tooltip=["added:Q", alt.Tooltip("value:Q", format="+.4f", title=words["sum"])])
    zero = alt.Chart(records(zero=[0])).mark_rule(color=HUES["residual"], strokeDash=[4, 4]).encode(y="zero:Q")
    mark = alt.Chart(records(needed=[needed], value=[float(running[needed])], word=[words["settled_at"]]))
    point = mark.mark_point(filled=True, size=110, color=HUES["key"]).encode(x="needed:Q", y="value:Q")
    name = mark.mark_text(align="left", dx=9, dy=-12, color=HUES["key"]).encode(
        x="needed:Q", y="value:Q", text="word:N"
    )
    return alt.layer(zero, line, point, name).properties(width="container", height=HEIGHT)


def token_bars(values: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> Chart:
    """Draw one measure at each token; what it says nothing of has no bar.

    Shapes:
        values: (pos,)

    Args:
        words: token, value, above, below; both hues mean one and the same where no value is below 0.
    """
    names = [f"{label} {index}" for index, label in enumerate(labels)]
    does = [words["below"] if value < 0 else words["above"] for value in np.nan_to_num(values).tolist()]
    signed = bool((np.nan_to_num(values) < 0).any())
    overlap = "greedy" if len(labels) > MOST_NAMED else False
    axis = alt.Axis(labelAngle=-50, labelLimit=80, labelOverlap=overlap, ticks=False, titlePadding=2)
    hue = alt.Color(
        "does:N",
        title=None,
        scale=alt.Scale(domain=[words["above"], words["below"]], range=[PALETTE[5], HUES["residual"]]),
        legend=alt.Legend(orient="top", direction="horizontal"),
    )
    bars = alt.Chart(records(token=names, value=values, does=does)).mark_bar()
    bars = bars.encode(
        x=alt.X("token:N", scale=alt.Scale(domain=names), title=words["token"], axis=axis),
        y=alt.Y("value:Q", title=words["value"], axis=alt.Axis(minExtent=46)),
        color=hue if signed else alt.value(HUES["weights"]),
        tooltip=["token:N", alt.Tooltip("value:Q", format="+.4f", title=words["value"])],
    )
    zero = alt.Chart(records(zero=[0])).mark_rule(color=HUES["residual"]).encode(y="zero:Q")
    return alt.layer(bars, zero).properties(width="container", height=HEIGHT)


def reliability(found: Mapping[str, np.ndarray], here: float, words: Mapping[str, str]) -> Chart:
    """Draw how often verdicts of each confidence are right, above how many there are of them.

    Args:
        found: edges (bin + 1,), counts, confidence, accuracy, low and high, (bin,).
        here: the confidence on the typed sentence.
        words: confidence, accuracy, count, perfect, here.
    """
    edges = np.asarray(found["edges"], dtype=float)
    rows = records(
        start=edges[:-1],
        end=edges[1:],
        count=found["counts"],
        sure=found["confidence"],
        right=found["accuracy"],
        low=found["low"],
        high=found["high"],
    )
    across = alt.Scale(domain=[float(edges[0]), 1.0], nice=False)
    shares = alt.Scale(domain=[0, 1])
    percent = alt.Axis(format="%", minExtent=44)
    base = alt.Chart(rows)
    place = alt.X("sure:Q", title=None, scale=across, axis=alt.Axis(format="%"))
    diagonal = alt.Chart(records(x=[float(edges[0]), 1.0], y=[float(edges[0]), 1.0])).mark_line(
        color=HUES["residual"], strokeDash=[5, 4]
    )
    perfect = diagonal.encode(x=alt.X("x:Q", scale=across, title=None), y=alt.Y("y:Q", scale=shares))
    bars = base.mark_rule(color=HUES["query"], strokeWidth=2).encode(
        x=place, y=alt.Y("low:Q", scale=shares), y2="high:Q"
    )
    points = base.mark_point(filled=True, size=110, color=HUES["query"], opacity=1).encode(
        x=place,
        y=alt.Y("right:Q", title=words["accuracy"], scale=shares, axis=percent),
        tooltip=[
            alt.Tooltip("sure:Q", format=".1%", title=words["confidence"]),
            alt.Tooltip("right:Q", format=".1%", title=words["accuracy"]),
            alt.Tooltip("low:Q", format=".1%"),
            alt.Tooltip("high:Q", format=".1%"),
            alt.Tooltip("count:Q", title=words["count"]),
        ],
    )
    own = alt.Chart(records(here=[here], word=[words["here"]]))
    rule = own.mark_rule(color=HUES["key"], strokeDash=[2, 2]).encode(x=alt.X("here:Q", scale=across))
    name = own.mark_text(align="right", dx=-5, baseline="top", color=HUES["key"]).encode(
        x=alt.X("here:Q", scale=across), y=alt.value(4), text="word:N"
    )
    upper = alt.layer(perfect, rule, bars, points, name).properties(width="container", height=HEIGHT)
    axis = alt.X("start:Q", title=words["confidence"], scale=across, axis=alt.Axis(format="%"))
    up = alt.Y("count:Q", title=words["count"], axis=alt.Axis(minExtent=44, tickCount=3))
    counts = base.mark_bar(color=HUES["residual"], stroke="white", strokeWidth=1).encode(
        x=axis, x2="end:Q", y=up, y2=alt.Y2Datum(0), tooltip=[alt.Tooltip("count:Q", title=words["count"])]
    )
    middle = base.transform_calculate(middle="(datum.start + datum.end) / 2")
    numbers = middle.mark_text(dy=-7, color=HUES["residual"]).encode(
        x=alt.X("middle:Q", scale=across), y="count:Q", text="count:Q"
    )
    lower = alt.layer(counts, numbers).properties(width="container", height=90)
    return alt.vconcat(upper, lower, spacing=6)
