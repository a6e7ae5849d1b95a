"""Figures of activations: their curves over a sentence's own pre-activations, and GELU as the mean of coin tosses.

Arrays come from transformer_core.analysis.feed_forward: activations and bernoulli.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, dashes_of, hued, records, tooltips
from pages.figures.forms import Filled, form, named

Words = Mapping[str, str]
HUES_OF_ACTIVATIONS = {
    "relu": HUES["query"],
    "gelu": HUES["key"],
    "gelu_tanh": HUES["value"],
    "silu": HUES["positions"],
}
ALL, TOKEN = HUES["residual"], HUES["weights"]
KEPT, LOST, MEAN = HUES["query"], HUES["positions"], HUES["key"]
EVERY, READ = 8, 4  # of the points of a curve one in so many is drawn, and can be read
FRAME = (-0.6, 3.0)
MOST_DOTS = 1_500


def hues_of(names: Sequence[str], words: Words) -> tuple[alt.Scale, alt.Scale]:
    """Return the scales of colour and dash that distinguish the activations."""
    shown = [words[f"name_{name}"] for name in names]
    return alt.Scale(domain=shown, range=[HUES_OF_ACTIVATIONS[name] for name in names]), dashes_of(shown)


def _axis(reach: float, *, title: str | None = None) -> alt.X:
    """Return the axis of pre-activations, symmetric about 0, that all parts of the figure share."""
    scale = alt.Scale(domain=[-reach, reach], nice=False)
    return alt.X("x:Q", title=title, scale=scale, axis=alt.Axis(tickCount=9, labels=title is not None))


def _curves(name: str, names: Sequence[str], words: Words, reach: float, *, y: alt.Y, legend: bool) -> alt.Chart:
    hue, dash = hues_of(names, words)
    shown = alt.Legend(orient="top", labelLimit=300, symbolStrokeWidth=3) if legend else None
    return (
        named(name)
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=_axis(reach),
            y=y,
            color=alt.Color("activation:N", scale=hue, title=None, legend=shown),
            strokeDash=alt.StrokeDash("activation:N", scale=dash, title=None, legend=shown),
        )
    )


POINTED, RULE = "pointed", "rule"


def _rule(name: str, said: Mapping[str, str], reach: float, *, format: str) -> alt.Chart:
    """Return a rule at the place that the pointer is nearest to, with what stands in the columns of its row.

    Args:
        name: of the rows.
        said: names of the columns, by column.
        format: of their numbers.
    """
    read = [alt.Tooltip(f"{column}:Q", title=title, format=format) for column, title in said.items()]
    return (
        named(name)
        .mark_rule(color=ALL, strokeWidth=1.5)
        .encode(
            x=_axis(reach),
            opacity=alt.condition({"param": POINTED, "empty": False}, alt.value(1.0), alt.value(0.0)),
            tooltip=[alt.Tooltip("x:Q", format=".3f"), *read],
        )
        .properties(name=RULE)
    )


def _pointed(*views: str) -> list[alt.TopLevelSelectionParameter]:
    """Let rules stand where the pointer is, those of several charts at the same place."""
    select = alt.PointSelectionConfig(type="point", fields=["x"], nearest=True, on="pointermove", clear="pointerout")
    return [alt.TopLevelSelectionParameter(name=POINTED, select=select, views=list(views))]


def _dots(words: Words, reach: float) -> alt.Chart:
    tooltip = [
        alt.Tooltip("token:N", title=words["token"]),
        alt.Tooltip("neuron:Q", title=words["neuron"]),
        alt.Tooltip("x:Q", title=words["pre_activation"]),
        alt.Tooltip("y:Q", title=words["activation"]),
    ]
    return (
        named("neurons")
        .mark_point(size=26, filled=True, color=TOKEN, opacity=0.4, clip=True)
        .encode(x=_axis(reach), y=alt.Y("y:Q"), tooltip=tooltip)
    )


def _histogram(words: Words, reach: float) -> Chart:
    """Draw the share of pre-activations in each bin: of the whole sentence as bars, of one token as a stepped line."""
    hue = alt.Scale(range=[ALL, TOKEN])
    color = alt.Color("of:N", sort=None, scale=hue, title=None, legend=alt.Legend(orient="top", labelLimit=400))
    share = alt.Y("share:Q", title=words["share_axis"])
    tooltip = tooltips("of:N", "low:Q", "high:Q", "count:Q", alt.Tooltip("share:Q", format=".2f"))
    chart = named("bins").encode(y=share, color=color, tooltip=tooltip)
    low = alt.X("low:Q", title=words["axis_pre"], scale=alt.Scale(domain=[-reach, reach], nice=False))
    bars = (
        chart.transform_filter("!datum.one_token")
        .mark_rect(opacity=0.75)
        .encode(x=low, x2=alt.X2("high:Q"), y2=alt.Y2("zero:Q"))
    )
    steps = (
        chart.transform_filter("datum.one_token")
        .mark_line(interpolate="step", strokeWidth=2)
        .encode(x=_axis(reach, title=words["axis_pre"]))
    )
    return alt.layer(bars, steps)


def _zero(reach: float, *, title: str | None = None) -> alt.Chart:
    return alt.Chart(records(x=[0.0])).mark_rule(color=ALL, strokeDash=[3, 3]).encode(x=_axis(reach, title=title))


def _rows_of_curves(x: np.ndarray, values: np.ndarray, names: Sequence[str], words: Words) -> Any:
    return records(
        x=np.tile(x[::EVERY], len(names)).round(4),
        y=values[:, ::EVERY].ravel().round(6),
        activation=np.repeat([words[f"name_{name}"] for name in names], len(x[::EVERY])),
    )


def _readings(x: np.ndarray, names: Sequence[str], **curves: np.ndarray) -> Any:
    """Return a row a place, with the height there of each curve in a column of its own."""
    columns = {
        f"{what}_{name}": row[::READ].round(6)
        for what, rows in curves.items()
        for name, row in zip(names, rows, strict=True)
    }
    return records(x=x[::READ].round(4), **columns)


def _bins(edges: np.ndarray, counts: np.ndarray, token_counts: np.ndarray, words: Words, *, token: str) -> Any:
    """Return the share of pre-activations in each bin: of the whole sentence, then of one token."""
    low, high = np.tile(edges[:-1], 2).round(4), np.tile(edges[1:], 2).round(4)
    both = (counts, token_counts)
    return records(
        low=low,
        high=high,
        share=np.concatenate([100 * part / max(part.sum(), 1) for part in both]).round(4),
        count=np.concatenate(both),
        of=np.repeat((words["whole_sentence"], words["one_token"].format(token=token)), len(counts)),
        one_token=np.repeat((False, True), len(counts)),
        x=((low + high) / 2).round(4),
        zero=np.zeros(len(low)),
    )


@form
def _all_curves(words: Words, names: tuple[str, ...], reach: float) -> Chart:
    zero = _zero(reach)
    above = alt.Y("y:Q", title=words["value_axis"], scale=alt.Scale(domain=FRAME, nice=False))
    slope = alt.Y("y:Q", title=words["slope_axis"], axis=alt.Axis(tickCount=4))
    read = {f"values_{name}": words[f"name_{name}"] for name in names}
    read |= {f"slopes_{name}": words["slope_of"].format(name=words[f"name_{name}"]) for name in names}
    rule = _rule("readings", read, reach, format=".4f")
    top = alt.layer(zero, _curves("values", names, words, reach, y=above, legend=True), rule, _dots(words, reach))
    slopes = alt.layer(zero, _curves("slopes", names, words, reach, y=slope, legend=False), rule)
    below = alt.layer(_zero(reach, title=words["axis_pre"]), _histogram(words, reach))
    heights = {250: top, 110: slopes, 140: below}
    parts = [part.properties(width="container", height=height) for height, part in heights.items()]
    both = (f"{RULE}_0", f"{RULE}_1")  # as Altair names what stands in the first chart and in the second
    whole = alt.vconcat(*parts, spacing=6, params=_pointed(*both))
    return whole.resolve_scale(color="independent", strokeDash="independent")


def curves_chart(found: Mapping[str, np.ndarray], words: Words, *, used: str, token: str) -> Filled:
    """Draw values, derivatives and the sentence's pre-activations, one under the other on one axis.

    Args:
        found: names, x, values, slopes, edges, counts, token_counts and token_values.
        words: of the page.
        used: the model's own activation; the token's neurons lie on its curve.
        token: the chosen one, as the legend writes it.
    """
    names = tuple(str(name) for name in found["names"])
    x, values, own = found["x"], found["values"], found["token_values"]
    neurons = records(
        neuron=np.arange(len(own)),
        x=own.astype(float).round(4),
        y=np.interp(own, x, values[names.index(used)]).round(4),
        token=[token] * len(own),
    )
    rows = {
        "values": _rows_of_curves(x, values, names, words),
        "slopes": _rows_of_curves(x, found["slopes"], names, words),
        "readings": _readings(x, names, values=values, slopes=found["slopes"]),
        "neurons": neurons,
        "bins": _bins(found["edges"], found["counts"], found["token_counts"], words, token=token),
    }
    return Filled(_all_curves(words, names, float(x[-1])), rows)


@form
def _difference(reach: float, across: str, up: str) -> Chart:
    area = (
        named("apart")
        .mark_area(line={"color": HUES["value"]}, color=HUES["value"], opacity=0.35)
        .encode(
            x=_axis(reach, title=across),
            y=alt.Y("y:Q", title=up, axis=alt.Axis(format=".1e", tickCount=4)),
        )
    )
    rule = _rule("apart", {"y": up}, reach, format=".3e")
    return alt.layer(area, rule, params=_pointed(RULE)).properties(height=180)


def difference_chart(x: np.ndarray, apart: np.ndarray, words: Words) -> Filled:
    """Draw |exact GELU - tanh GELU| over the axis."""
    rows = {"apart": records(x=x[::READ].round(4), y=apart[::READ])}
    return Filled(_difference(float(x[-1]), words["axis_pre"], words["difference_axis"]), rows)


def _log(field: str, title: str) -> alt.X:
    return alt.X(field, title=title, scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=6))


def tosses_chart(found: Mapping[str, np.ndarray], words: Words) -> Filled:
    """Draw the outcome of each toss (x or 0), the running mean, and GELU(x) as a rule.

    Args:
        found: kept, drawn, running_mean, x and expected.
    """
    kept, x = found["kept"], float(found["x"])
    places = np.unique(np.geomspace(1, len(kept), min(MOST_DOTS, len(kept))).round().astype(int))
    outcome = kept[places - 1]
    rows = {
        "tosses": records(draw=places, y=outcome * x, kept=np.where(outcome, words["kept"], words["lost"])),
        "label": records(y=[float(found["expected"])], label=[f"GELU({x:g}) = {float(found['expected']):.5f}"]),
        "means": records(draw=found["drawn"], mean=found["running_mean"].round(6)),
    }
    kinds = (words["kept"], words["lost"])
    return Filled(_tosses(kinds, words["axis_draws"], words["axis_outcome"]), rows, height=300)


@form
def _tosses(kinds: tuple[str, str], across: str, up: str) -> Chart:
    dots = (
        named("tosses")
        .mark_point(filled=True, size=28, opacity=0.5)
        .encode(
            x=_log("draw:Q", across),
            y=alt.Y("y:Q", title=up, scale=alt.Scale(padding=16)),
            color=hued("kept", kinds, (KEPT, LOST)),
            shape=alt.Shape("kept:N", scale=alt.Scale(domain=list(kinds)), title=None, legend=alt.Legend(orient="top")),
            tooltip=tooltips("draw:Q", "kept:N", "y:Q"),
        )
    )
    mean = named("means").mark_line(color=MEAN, strokeWidth=3)
    mean = mean.encode(x=alt.X("draw:Q"), y=alt.Y("mean:Q"), tooltip=tooltips("draw:Q", "mean:Q"))
    rule = named("label").mark_rule(strokeDash=[6, 4], color=HUES["residual"], strokeWidth=2).encode(y=alt.Y("y:Q"))
    text = named("label").mark_text(align="right", dx=-4, dy=-9, color=HUES["residual"], fontWeight="bold")
    return alt.layer(dots, rule, mean, text.encode(y=alt.Y("y:Q"), x=alt.value("width"), text=alt.Text("label:N")))


def error_chart(found: Mapping[str, np.ndarray], words: Words) -> Chart:
    """Draw the error of the mean over the number of draws: of many series (dots and a fitted line) and of this one.

    Args:
        found: sizes, root_mean_square, slope, drawn, running_mean and expected.
    """
    sizes, errors, slope = found["sizes"], found["root_mean_square"], float(found["slope"])
    fitted = np.exp(np.log(errors).mean() + slope * (np.log(sizes) - np.log(sizes).mean()))
    y = alt.Y(
        "error:Q", title=words["axis_error"], scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5)
    )
    many, one = words["series_many"], words["series_one"]
    colour = hued("of", (many, one), (MEAN, HUES["residual"]), labelLimit=400)
    own = np.abs(found["running_mean"] - found["expected"])
    there = (own > 0) & (found["drawn"] >= sizes[0])
    series = (
        alt.Chart(records(draws=found["drawn"][there], error=own[there], of=[one] * int(there.sum())))
        .mark_line(strokeWidth=1.2, opacity=0.8)
        .encode(x=_log("draws:Q", words["axis_draws"]), y=y, color=colour)
    )
    line = (
        alt.Chart(records(draws=sizes, error=fitted))
        .mark_line(color=MEAN, strokeDash=[5, 4])
        .encode(x=alt.X("draws:Q"), y=y)
    )
    dots = (
        alt.Chart(records(draws=sizes, error=errors, of=[many] * len(sizes)))
        .mark_point(filled=True, size=80)
        .encode(
            x=alt.X("draws:Q"),
            y=y,
            color=colour,
            tooltip=[alt.Tooltip("draws:Q"), alt.Tooltip("error:Q", format=".3e")],
        )
    )
    return alt.layer(series, line, dots).properties(width="container", height=300)
