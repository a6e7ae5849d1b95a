"""The encoder page's bars: products of the last sum, what each token is worth, and the reliability diagram.

Arrays come from transformer_core.analysis.encoder. Read next: encoder_matrices.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records

HEIGHT = 330
MOST_NAMED = 48
BARS_IN_HEIGHT = 5  # the longest bar of counts takes this part of the height


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
                legend=alt.Legend(orient="top", direction="horizontal", labelLimit=320),
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
        legend=alt.Legend(orient="top", direction="horizontal", labelLimit=320),
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
    """Draw how often verdicts of each confidence are right, over low bars of how many there are of them.

    Args:
        found: edges (bin + 1,), counts, confidence, accuracy, low and high, (bin,).
        here: the confidence on the typed sentence.
        words: confidence, accuracy, count, here.
    """
    edges = np.asarray(found["edges"], dtype=float)
    rows = records(
        start=edges[:-1],
        end=edges[1:],
        middle=(edges[:-1] + edges[1:]) / 2,
        count=found["counts"],
        sure=found["confidence"],
        right=found["accuracy"],
        low=found["low"],
        high=found["high"],
    )
    base, across = alt.Chart(rows), alt.Scale(domain=[float(edges[0]), 1.0], nice=False)
    axis = alt.Axis(format=".0%", values=edges.tolist(), labelFlush=False)

    def at(name: str) -> alt.X:
        return alt.X(f"{name}:Q", title=words["confidence"], scale=across, axis=axis)

    up = alt.Y("right:Q", title=words["accuracy"], scale=alt.Scale(domain=[0, 1]))
    up = up.axis(format=".0%", minExtent=44, grid=True)
    diagonal = alt.Chart(records(sure=[float(edges[0]), 1.0], right=[float(edges[0]), 1.0])).mark_line(
        color=HUES["residual"], strokeDash=[5, 4]
    )
    own = alt.Chart(records(here=[here], word=[words["here"]]))
    side = "right" if here > edges[[0, -1]].mean() else "left"
    verdicts = alt.layer(
        diagonal.encode(x=at("sure"), y=up),
        own.mark_rule(color=HUES["key"], strokeDash=[2, 2]).encode(x=at("here")),
        base.mark_rule(color=HUES["query"], strokeWidth=2).encode(x=at("sure"), y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=110, color=HUES["query"], opacity=1).encode(
            x=at("sure"), y=up, tooltip=_bin_tooltips(words)
        ),
        own.mark_text(align=side, dx=-5 if side == "right" else 5, baseline="top", color=HUES["key"]).encode(
            x=at("here"), y=alt.value(4), text="word:N"
        ),
    )
    chart = alt.layer(_counts(base, at("start"), at("middle"), int(np.max(found["counts"])), words), verdicts)
    return chart.resolve_scale(y="independent").properties(width="container", height=HEIGHT + 40)


def _bin_tooltips(words: Mapping[str, str]) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("sure:Q", format=".1%", title=words["confidence"]),
        alt.Tooltip("right:Q", format=".1%", title=words["accuracy"]),
        alt.Tooltip("low:Q", format=".1%"),
        alt.Tooltip("high:Q", format=".1%"),
        alt.Tooltip("count:Q", title=words["count"]),
    ]


def _counts(
    base: alt.Chart, start: alt.X, middle: alt.X, most: int, words: Mapping[str, str]
) -> alt.LayerChart | alt.FacetChart:
    """Draw the counts as bars that take a part of the height, on an axis of their own at the right."""
    axis = alt.Axis(orient="right", values=[0, most], grid=False)
    up = alt.Y(
        "count:Q", title=words["count"], scale=alt.Scale(domain=[0, BARS_IN_HEIGHT * most], nice=False), axis=axis
    )
    bars = base.mark_bar(color=HUES["residual"], opacity=0.45, stroke="white", strokeWidth=1).encode(
        x=start, x2="end:Q", y=up, y2=alt.Y2Datum(0), tooltip=[alt.Tooltip("count:Q", title=words["count"])]
    )
    numbers = base.mark_text(dy=-7).encode(x=middle, y=up, text="count:Q")
    return alt.layer(bars, numbers)
