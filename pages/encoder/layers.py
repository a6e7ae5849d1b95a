"""The page's part on layers: the verdict at every depth, how far tokens move, and linear probes at each depth."""

import streamlit as st

from pages.encoder.figures import moves_figure, stage_lines
from pages.encoder.names import class_name, depth_names, figure_words, token_name
from pages.kit.asking import Answer, ask
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Values
from pages.kit.experiment import ask_first, experiment, fragment, options_of, say
from pages.kit.explanation import show_counter_examples, show_explanation, show_weak_sides
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, export_picture, show_picture
from pages.kit.verdict import show_verdict, verdict_of
from pages.kit.waiting import awaited
from pages.language import joined, plain, section, t
from pages.room import Part
from transformer_core.analysis.encoder.layers import POOLINGS, LayerVerdicts, layer_verdicts
from transformer_core.analysis.encoder.linear_probes import LinearProbes, linear_probes
from transformer_core.analysis.positions.order_cases import LABELS

TRAIN, HELD_OUT = 400, 600
NEAR, FAR = 0.55, 0.65


def _picture(view: View, _: Values) -> Live:
    """Return the verdict at every depth, the model's own, and how far each token's vector moves."""
    answer = ask(layer_verdicts, prompt=view.prompt)
    verdict = verdict_of(view.bundle.labels, answer.value.final)
    return Live((_moves(view, answer),), {"encoder_layers": verdict}, drawings=(_curve(view, answer),))


@fragment
def _show(view: View) -> None:
    """Show the verdict at every depth beside the model's own, and below how far each token's vector moves."""
    live = LAYERS.live(view)
    (moves,), (curve,) = live.matrices, live.drawings
    found: LayerVerdicts = moves.answer.value
    chart_place, numbers_place = st.columns([5, 2], gap="large")
    with chart_place:
        show_drawing(curve)
    with numbers_place:
        st.caption(t("encoder.own_verdict", pooling=t(f"encoder.pooling_{found.pooling}")))
        show_verdict(live.verdicts["encoder_layers"], place="encoder_layers")
        st.metric(
            t("encoder.settled", label=class_name(view, found.winner)),
            depth_names(view)[found.settled],
            help=t("encoder.settled_help"),
        )
        other = POOLINGS[1 - POOLINGS.index(found.pooling)]
        by_other = found.probabilities[POOLINGS.index(other), -1, found.winner]
        st.metric(
            t("encoder.by_other", label=class_name(view, found.winner), pooling=t(f"encoder.pooling_{other}")),
            f"{by_other:.1%}",
        )
        st.caption(t(f"encoder.only_{found.pooling}"))
    LAYERS.follow(view)
    explanation_place, turning_place = st.columns([3, 2], gap="large")
    with explanation_place:
        show_explanation(view)
        show_weak_sides(view)
    _show_moves(view, moves)
    _try_probes(view)
    with turning_place:  # computed last, because it takes longest
        show_counter_examples(view)


def _curve(view: View, answer: Answer[LayerVerdicts]) -> Drawing:
    found, label = answer.value, class_name(view, answer.value.winner)
    own = POOLINGS.index(found.pooling)
    series = {
        t(f"encoder.curve_{POOLINGS[place]}_{'own' if place == own else 'other'}"): found.probabilities[
            place, :, found.winner
        ]
        for place in (own, 1 - own)
    }
    words = {"stage": t("encoder.axis_depth"), "value": t("encoder.axis_probability", label=label)}
    chart = stage_lines(depth_names(view), series, words, domain=(0.0, 1.0), level=0.5, format=".1%")
    return Drawing("encoder_curve", chart, answer, "encoder_layers", t("encoder.curve_label", label=label))


def _moves(view: View, answer: Answer[LayerVerdicts]) -> Picture:
    found = answer.value
    figure = moves_figure(found.moves, found.angles, view.encoding.labels, figure_words())
    return Picture("encoder_moves", figure, answer, version=f"moves|{view.encoding.text}")


def _show_moves(view: View, picture: Picture) -> None:
    found: LayerVerdicts = picture.answer.value
    layer, token = found.farthest
    st.subheader(t("encoder.moves_heading"), anchor=False)
    show_prose(section("encoder", "moves"))
    show_picture(picture)
    st.caption(
        t(
            "encoder.farthest",
            token=token_name(view, token),
            layer=layer,
            move=f"{found.moves[layer, token]:.2f}",
            angle=f"{found.angles[layer, token]:.0f}",
        )
    )
    export_picture(picture)


def knows_reviews(view: View) -> bool:
    """Return whether the built-in reviews have this model's labels; say so on the page where they have not."""
    if view.bundle.labels == LABELS:
        return True
    labels = ", ".join(plain(label) for label in view.bundle.labels[:8])
    st.info(t("encoder.other_labels", labels=labels), icon=":material/info:")
    return False


@experiment("encoder_probes_open", "encoder.try_probes")
def _try_probes(view: View) -> None:
    if not knows_reviews(view):
        return
    options = options_of("encoder.probe_{}", ("coin", "some", "more"))
    question = section("encoder", "try_probes").format(train=TRAIN, held_out=HELD_OUT)
    cover = ask_first(question, options, name="encoder_probes", about=view.bundle.name)
    asked, reading = {"bundle": view.bundle, "train": TRAIN, "held_out": HELD_OUT}, TRAIN + HELD_OUT
    with cover.picture():
        answer = awaited(linear_probes, t("encoder.reading", count=reading), key="encoder_probes", **asked)
        if answer is None:
            return
        _show_probes(view, answer)
    found = answer.value
    first = float(found.probes[POOLINGS.index(found.pooling), 1])
    cover.judge("coin" if first < NEAR else "some" if first < FAR else "more")


def generalises(found: LinearProbes) -> bool:
    """Tell whether the last map does as well on reviews that it never saw, to within a standard error."""
    own = POOLINGS.index(found.pooling)
    return bool(found.trained[own, -1] - found.probes[own, -1] <= found.error)


def _show_probes(view: View, answer: Answer[LinearProbes]) -> None:
    found = answer.value
    own = POOLINGS.index(found.pooling)
    series = {t(f"encoder.probe_{name}"): found.probes[place] for place, name in enumerate(POOLINGS)}
    series[t("encoder.probe_own_map", pooling=t(f"encoder.pooling_{found.pooling}"))] = found.own_map[own]
    words = {"stage": t("encoder.axis_depth"), "value": t("encoder.axis_accuracy")}
    chart = stage_lines(depth_names(view), series, words, level=0.5, format=".1%")
    show_chart(chart, answer, key="encoder_probes", label=t("encoder.probes_label"))
    cls, mean = found.probes[:, -1]
    say(
        t(
            "encoder.probes_measured",
            first=f"{found.probes[own, 1]:.1%}",
            cls=f"{cls:.1%}",
            mean=f"{mean:.1%}",
            own=f"{found.own_map[own, -1]:.1%}",
            error=f"{100 * found.error:.1f}",
        )
    )
    note = t(
        "encoder.probes_note",
        language=t(f"encoder.corpus_{found.language}"),
        train=found.train,
        held_out=found.held_out,
        seen=f"{found.trained[own, -1]:.1%}",
    )
    say(joined(note, t("encoder.probes_hold" if generalises(found) else "encoder.probes_gap")), small=True)


LAYERS = Part("encoder", "layers", _show, _picture)
