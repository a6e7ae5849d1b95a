"""The page's part on curves: activations, their derivatives, and where this sentence's neurons lie on them."""

import streamlit as st

from pages.feed_forward.figures.activations import curves_chart, difference_chart
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import Drawing, show_chart, show_drawing
from pages.ui.experiment import ask_first, fragment, lazy_box, say
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.number_format import significant
from pages.ui.pickers import choose_layer, choose_token, chosen_number, chosen_token, layer_choices
from transformer_core.analysis.feed_forward.activations import OwnActivations, own_activations

TOKEN = "feed_forward_token"


def live_curves(view: View) -> Live:
    """Return the curves with the sentence's own pre-activations under them."""
    layer = chosen_number("layer", view.bundle.config.n_layers)
    token, called = chosen_token(view, name=TOKEN)
    answer = ask_once(own_activations, **view.asked, layer=layer, token=token)
    chart = curves_chart(answer.arrays, strings("feed_forward"), used=answer.value.used, token=called)
    label = t("feed_forward.curves_label", layer=layer)
    return Live(drawings=(Drawing("feed_forward_curves", chart, answer, f"feed_forward_curves_layer{layer}", label),))


@fragment
def curves_part(view: View) -> None:
    """Show the curves with the sentence's own pre-activations under them, and numbers about both."""
    layers, tokens = st.columns([1, 1])
    with layers:
        layer = choose_layer(t("feed_forward.layer"), view)
    with tokens:
        choose_token(t("feed_forward.token"), view, name=TOKEN)
    (drawing,) = live_curves(view).drawings
    answer: Answer[OwnActivations] = drawing.answer
    found = answer.value
    figure, _, figures = st.columns([30, 2, 10])
    with figure:
        show_drawing(drawing)
    follow_finger("feed_forward", "curves", view, choices=layer_choices(view))
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


def _try_difference(answer: Answer[OwnActivations]) -> None:
    box = lazy_box(t("feed_forward.try_difference"), icon=":material/science:", key="feed_forward_try_open")
    if box is None:
        return
    with box:
        options = {name: t(f"feed_forward.apart_{name}") for name in ("near", "middle", "far")}
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
