"""The page's part on curves: activations, their derivatives, and where this sentence's neurons lie on them."""

import streamlit as st

from pages.feed_forward.figures.activations import curves_chart, difference_chart
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Values, layer_control, show_in_columns, token_control
from pages.kit.experiment import ask_first, experiment, fragment, options_of, say
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.number_format import significant
from pages.language import section, strings, t
from pages.room import Part
from transformer_core.analysis.feed_forward.activations import OwnActivations, own_activations

LAYER, TOKEN = layer_control("feed_forward.layer"), token_control("feed_forward_token", "feed_forward.token")


def _picture(view: View, values: Values) -> Live:
    """Return the curves with the sentence's own pre-activations under them."""
    layer, token = values[LAYER], values[TOKEN]
    answer = ask_once(own_activations, prompt=view.prompt, layer=layer, token=token)
    named = f"{token} · {view.encoding.labels[token]}"
    chart = curves_chart(answer.arrays, strings("feed_forward"), used=answer.value.used, token=named)
    label = t("feed_forward.curves_label", layer=layer)
    return Live(drawings=(Drawing("feed_forward_curves", chart, answer, f"feed_forward_curves_layer{layer}", label),))


@fragment
def _show(view: View) -> None:
    """Show the curves with the sentence's own pre-activations under them, and numbers about both."""
    layer, _ = show_in_columns(view, LAYER, TOKEN)
    (drawing,) = CURVES.live(view).drawings
    answer: Answer[OwnActivations] = drawing.answer
    found = answer.value
    figure, _, figures = st.columns([30, 2, 10])
    with figure:
        show_drawing(drawing)
    CURVES.follow(view)
    with figures:
        st.metric(t("feed_forward.below_zero", layer=layer), f"{found.below_zero:.1%}")
        st.metric(t("feed_forward.token_below_zero"), f"{found.token_below_zero:.1%}")
        st.metric(t("feed_forward.own_difference"), significant(found.own_difference, 3))
        st.caption(
            t(
                "feed_forward.curves_note",
                count=f"{found.neurons:,}",
                tokens=len(view.encoding),
                used=t(f"feed_forward.name_{found.used}"),
                place=f"{found.own_place:+.3f}",
            )
        )
    _try_difference(answer)


@experiment("feed_forward_try_open", "feed_forward.try_difference")
def _try_difference(answer: Answer[OwnActivations]) -> None:
    options = options_of("feed_forward.apart_{}", ("near", "middle", "far"))
    cover = ask_first(section("feed_forward", "try_difference"), options, name="feed_forward_gelu_tanh_apart")
    found = answer.value
    away = abs(found.axis_place)
    outcome = "near" if away < 1 else "middle" if away <= 4 else "far"
    cover.judge(outcome)
    with cover.picture():
        say(
            t(
                "feed_forward.apart_measured",
                difference=significant(found.axis_difference, 3),
                place=f"{found.axis_place:+.3f}",
                own=significant(found.own_difference, 3),
                own_place=f"{found.own_place:+.3f}",
            )
        )
        show_chart(
            difference_chart(found.x, found.apart, strings("feed_forward")),
            answer,
            key="feed_forward_apart",
            stem="feed_forward_gelu_difference",
            label=t("feed_forward.apart_label"),
        )


CURVES = Part("feed_forward", "curves", _show, _picture, (LAYER, TOKEN))
