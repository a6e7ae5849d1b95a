"""Activations as curves, with a sentence's own pre-activations as a histogram under them on the same axis.

Arrays come from transformer_core.analysis.feed_forward.activations. Read next: feed_forward_coin.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, Chart, records

Words = Mapping[str, str]
HUES_OF_ACTIVATIONS = {
    "relu": HUES["query"],
    "gelu": HUES["key"],
    "gelu_tanh": HUES["value"],
    "silu": HUES["positions"],
}
ALL, TOKEN = HUES["residual"], HUES["weights"]
EVERY = 8
FRAME = (-0.6, 3.0)


def hues_of(names: Sequence[str], words: Words) -> tuple[alt.Scale, alt.Scale]:
    """Return the scales of hue and dash that tell activations apart."""
    shown = [words[f"name_{name}"] for name in names]
    hues = [HUES_OF_ACTIVATIONS[name] for name in names]
    return (
        alt.Scale(domain=shown, range=hues),
        alt.Scale(domain=shown, range=[list(dash) for dash in DASHES[: len(shown)]]),
    )


def _curves(
    x: np.ndarray, values: np.ndarray, names: Sequence[str], words: Words, *, y: alt.Y, legend: bool
) -> alt.Chart:
    hue, dash = hues_of(names, words)
    data = records(
        x=np.tile(x[::EVERY], len(names)).round(4),
        y=values[:, ::EVERY].ravel().round(6),
        activation=np.repeat([words[f"name_{name}"] for name in names], len(x[::EVERY])),
    )
    shown = alt.Legend(orient="top", labelLimit=300, symbolStrokeWidth=3) if legend else None
    return (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=axis_of(x),
            y=y,
            color=alt.Color("activation:N", scale=hue, title=None, legend=shown),
            strokeDash=alt.StrokeDash("activation:N", scale=dash, title=None, legend=shown),
            tooltip=["activation:N", "x:Q", "y:Q"],
        )
    )


def _domain(x: np.ndarray) -> alt.Scale:
    return alt.Scale(domain=[float(x[0]), float(x[-1])], nice=False)


def axis_of(x: np.ndarray, *, title: str | None = None) -> alt.X:
    """Return the axis of pre-activations that all parts of the figure share."""
    return alt.X("x:Q", title=title, scale=_domain(x), axis=alt.Axis(tickCount=9, labels=title is not None))


def _dots(x: np.ndarray, values: np.ndarray, own: np.ndarray, words: Words, *, token: str) -> alt.Chart:
    data = records(
        neuron=np.arange(len(own)),
        x=own.astype(float).round(4),
        y=np.interp(own, x, values).round(4),
        token=[token] * len(own),
    )
    tooltip = [
        alt.Tooltip("token:N", title=words["token"]),
        alt.Tooltip("neuron:Q", title=words["neuron"]),
        alt.Tooltip("x:Q", title=words["pre_activation"]),
        alt.Tooltip("y:Q", title=words["activation"]),
    ]
    return (
        alt.Chart(data)
        .mark_point(size=26, filled=True, color=TOKEN, opacity=0.4, clip=True)
        .encode(x=axis_of(x), y="y:Q", tooltip=tooltip)
    )


def histogram(
    x: np.ndarray, edges: np.ndarray, counts: np.ndarray, token_counts: np.ndarray, words: Words, *, token: str
) -> Chart:
    """Draw the share of pre-activations in each bin: of the whole sentence as bars, of one token as a stepped line."""
    groups = (words["whole_sentence"], words["one_token"].format(token=token))
    hue = alt.Scale(domain=list(groups), range=[ALL, TOKEN])
    base = {
        "low": np.tile(edges[:-1], 2).round(4),
        "high": np.tile(edges[1:], 2).round(4),
        "share": np.concatenate([100 * part / max(part.sum(), 1) for part in (counts, token_counts)]).round(4),
        "count": np.concatenate([counts, token_counts]),
        "of": np.repeat(groups, len(counts)),
    }
    middle = (base["low"] + base["high"]) / 2
    data = records(**base, x=middle.round(4), zero=np.zeros(len(middle)))
    color = alt.Color("of:N", scale=hue, title=None, legend=alt.Legend(orient="top", labelLimit=400))
    share = alt.Y("share:Q", title=words["share_axis"])
    tooltip = ["of:N", "low:Q", "high:Q", "count:Q", alt.Tooltip("share:Q", format=".2f")]
    chart = alt.Chart(data).encode(y=share, color=color, tooltip=tooltip)
    bars = (
        chart.transform_filter(alt.datum.of == groups[0])
        .mark_rect(opacity=0.75)
        .encode(x=alt.X("low:Q", scale=_domain(x), title=words["axis_pre"]), x2="high:Q", y2="zero:Q")
    )
    steps = (
        chart.transform_filter(alt.datum.of == groups[1])
        .mark_line(interpolate="step", strokeWidth=2)
        .encode(x=axis_of(x, title=words["axis_pre"]))
    )
    return alt.layer(bars, steps)


def _zero(x: np.ndarray, *, title: str | None = None) -> alt.Chart:
    return alt.Chart(records(x=[0.0])).mark_rule(color=ALL, strokeDash=[3, 3]).encode(x=axis_of(x, title=title))


def curves_chart(found: Mapping[str, np.ndarray], words: Words, *, used: str, token: str) -> Chart:
    """Draw values, derivatives and the sentence's pre-activations, one under the other on one axis.

    Args:
        found: names, x, values, slopes, edges, counts, token_counts and token_values.
        words: of the page.
        used: the activation that the model has; the token's neurons lie on its curve.
        token: the chosen one.
    """
    names = [str(name) for name in found["names"]]
    x, values = found["x"], found["values"]
    zero = _zero(x)
    dots = _dots(x, values[names.index(used)], found["token_values"], words, token=token)
    above = alt.Y("y:Q", title=words["value_axis"], scale=alt.Scale(domain=FRAME, nice=False))
    slope = alt.Y("y:Q", title=words["slope_axis"], axis=alt.Axis(tickCount=4))
    top = alt.layer(zero, _curves(x, values, names, words, y=above, legend=True), dots)
    slopes = alt.layer(zero, _curves(x, found["slopes"], names, words, y=slope, legend=False))
    bottom = _zero(x, title=words["axis_pre"])
    below = alt.layer(bottom, histogram(x, found["edges"], found["counts"], found["token_counts"], words, token=token))
    heights = {250: top, 110: slopes, 140: below}
    parts = [part.properties(width="container", height=height) for height, part in heights.items()]
    return alt.vconcat(*parts, spacing=6).resolve_scale(color="independent", strokeDash="independent")


def difference_chart(x: np.ndarray, apart: np.ndarray, words: Words) -> Chart:
    """Draw |exact GELU - tanh GELU| over the axis."""
    data = records(x=x[::EVERY].round(4), y=apart[::EVERY])
    return (
        alt.Chart(data)
        .mark_area(line={"color": HUES["value"]}, color=HUES["value"], opacity=0.35)
        .encode(
            x=axis_of(x, title=words["axis_pre"]),
            y=alt.Y("y:Q", title=words["difference_axis"], axis=alt.Axis(format=".1e", tickCount=4)),
            tooltip=["x:Q", alt.Tooltip("y:Q", format=".3e")],
        )
        .properties(width="container", height=180)
    )
