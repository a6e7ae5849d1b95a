"""Figures of neurons: the strongest, all of a layer, how far the verdict moves without one, and which stay near 0.

Also how far the verdict moves with another activation. Arrays come from transformer_core.analysis.feed_forward:
neurons and other_activation.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.feed_forward.figures.activations import hues_of
from pages.figures.charts import HUES, PALETTE, Chart, dashes_of, hued, records, tooltips
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

Words = Mapping[str, str]


def strongest_figure(
    shown: Mapping[str, np.ndarray],
    columns: np.ndarray,
    labels: tuple[str, ...],
    words: Words,
    *,
    cell: tuple[int, int] | None,
    title: str,
    note: str,
) -> MatrixFigure:
    """Draw what is computed of the neurons that are strongest in the sentence, the activations last.

    Args:
        shown: (pos, neuron) by title.
        columns: numbers of the neurons to draw, in this order.
        labels: one a token.
        cell: the pinned (token, column).
        title, note: printed above and below.
    """
    across = Axis(words["neuron"], tuple(map(str, columns.tolist())))
    parts = {title: values[:, columns] for title, values in shown.items()}
    panels = (
        Panel(f"strongest{place}", title, part, Scale.of("signed", part))
        for place, (title, part) in enumerate(parts.items())
    )
    return MatrixFigure(
        tuple(panels),
        Axis(words["token"], labels),
        across,
        detail="exact",
        cell=cell,
        cell_panel=len(parts) - 1,
        link="neurons",
        quantity=words["activation"] if len(parts) == 1 else "",
        title=title,
        note=note,
        filename="feed_forward_strongest",
    )


def whole_figure(activation: np.ndarray, labels: tuple[str, ...], words: Words) -> MatrixFigure:
    """Draw every activation of a layer, (pos, neuron)."""
    across = Axis.counted(words["neuron"], activation.shape[1])
    return MatrixFigure(
        (Panel("whole", words["whole"], activation, Scale.of("signed", activation)),),
        Axis(words["token"], labels),
        across,
        link="neurons_whole",
        quantity=words["activation"],
        filename="feed_forward_activations",
    )


def moves_chart(peaks: np.ndarray, moves: np.ndarray, words: Words, *, neuron: int) -> Chart:
    """Draw, for each neuron of a layer, how strong it is in the sentence and how far the verdict moves without it."""
    which = np.where(np.arange(len(peaks)) == neuron, words["this_neuron"], words["other_neurons"])
    names = [words["this_neuron"], words["other_neurons"]]
    data = records(
        neuron=np.arange(len(peaks)), peak=peaks.astype(float).round(4), move=np.abs(moves).round(5), which=which
    )
    chart = alt.Chart(data).encode(
        x=alt.X("peak:Q", title=words["axis_peak"]),
        y=alt.Y("move:Q", title=words["axis_move"]),
        color=hued("which", names, (HUES["key"], HUES["weights"])),
        shape=alt.Shape("which:N", scale=alt.Scale(domain=names, range=["diamond", "circle"]), title=None),
        tooltip=tooltips("neuron:Q", "peak:Q", "move:Q"),
    )
    others = chart.transform_filter(alt.datum.which == names[1]).mark_point(filled=True, size=30, opacity=0.5)
    this = chart.transform_filter(alt.datum.which == names[0]).mark_point(filled=True, size=170)
    return alt.layer(others, this).properties(width="container", height=280)


def quiet_chart(bands: np.ndarray, within: np.ndarray, neurons: int, words: Words, *, band: float) -> Chart:
    """Draw the share of each layer's neurons whose activation stays within a distance from 0, over that distance.

    Args:
        bands: (band,), distances from 0.
        within: (layer, band), numbers of neurons.
        neurons: number of neurons of a layer.
        band: the distance that the page counts with, drawn as a rule.
    """
    names = [words["layer_name"].format(layer=layer) for layer in range(len(within))]
    data = records(
        band=np.tile(bands, len(names)),
        share=(100 * within / neurons).ravel().round(3),
        count=within.ravel(),
        layer=np.repeat(names, len(bands)),
    )
    hues = [PALETTE[place % len(PALETTE)] for place in range(len(names))]
    curves = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("band:Q", title=words["axis_band"], scale=alt.Scale(type="log"), axis=alt.Axis(format="~g")),
            y=alt.Y("share:Q", title=words["axis_within"], scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("layer:N", scale=alt.Scale(domain=names, range=hues), title=None),
            strokeDash=alt.StrokeDash("layer:N", scale=dashes_of(names), title=None),
            tooltip=tooltips("layer:N", alt.Tooltip("band:Q", format=".3g"), "count:Q", "share:Q"),
        )
    )
    rule = (
        alt.Chart(records(band=[band])).mark_rule(color=HUES["residual"], strokeDash=[4, 4]).encode(x=alt.X("band:Q"))
    )
    return alt.layer(rule, curves).properties(width="container", height=260)


def swap_chart(names: Sequence[str], moves: np.ndarray, by_layer: np.ndarray, words: Words, *, used: str) -> Chart:
    """Draw how far the verdict moves with each activation but the model's own.

    Args:
        names: of the activations.
        moves: (activation,), exchanged everywhere, in percentage points.
        by_layer: (layer, activation), exchanged in one layer alone.
        used: the model's own.
    """
    others = [place for place, name in enumerate(names) if name != used]
    places = [words["everywhere"], *(words["layer_name"].format(layer=layer) for layer in range(len(by_layer)))]
    every = np.vstack([moves, by_layer])[:, others]  # (place, activation)
    shown = [words[f"name_{names[other]}"] for other in others]
    data = records(
        where=np.repeat(places, len(others)), activation=np.tile(shown, len(places)), move=every.ravel().round(6)
    )
    hue, _ = hues_of([names[other] for other in others], words)
    bars = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            y=alt.Y("where:N", sort=places, title=None),
            yOffset=alt.YOffset("activation:N", sort=shown),
            x=alt.X("move:Q", title=words["axis_points"], scale=alt.Scale(padding=44)),
            color=alt.Color("activation:N", scale=hue, title=None, legend=alt.Legend(orient="top", labelLimit=300)),
            tooltip=tooltips("where:N", "activation:N", alt.Tooltip("move:Q", format="+.4f")),
        )
    )
    zero = alt.Chart(records(move=[0.0])).mark_rule(color=HUES["residual"]).encode(x=alt.X("move:Q"))
    numbers = (
        alt.Chart(data)
        .mark_text(
            align=alt.expr("datum.move < 0 ? 'right' : 'left'"),
            dx=alt.expr("datum.move < 0 ? -4 : 4"),
            color=HUES["residual"],
        )
        .encode(
            y=alt.Y("where:N", sort=places),
            yOffset=alt.YOffset("activation:N", sort=shown),
            x=alt.X("move:Q"),
            text=alt.Text("move:Q", format="+.3f"),
        )
    )
    return alt.layer(bars, zero, numbers).properties(width="container", height=56 * len(places) + 80)
