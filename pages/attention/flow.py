"""Entropy of every head, rollout through the layers, and whether either agrees with what hiding a word does."""

import math

import streamlit as st

from pages.attention.chosen_head import HEAD, LAYER, board_words, on_board, show_layer_and_head
from pages.attention.figures import entropy_bars, entropy_board, flow_matrices, hidden_bars, led_bars
from pages.kit.asking import ask
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Choice, Values
from pages.kit.experiment import Cover, ask_first, fragment, options_of, say, say_number
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.verdict import chart_word, concludes
from pages.kit.waiting import BRIEF, awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.attention.heads import head_entropies
from transformer_core.analysis.attention.occlusion import Evidence, substitutes, verdict_evidence
from transformer_core.analysis.attention.rollout import attention_flow
from transformer_core.analysis.rank_correlation import RankCorrelation, agreement_word

SUBSTITUTE = Choice(
    "attention_substitute",
    lambda view: substitutes(view.bundle),
    label="attention.substitute",
    words="attention.substitute_{}",
)
ROLLOUT = (
    r"\tilde A_l=\tfrac12\,\bar A_l+\tfrac12 I,\quad \bar A_l=\tfrac1H\textstyle\sum_h A_{l,h},"
    r"\qquad R=\tilde A_L\cdots\tilde A_2\,\tilde A_1\;"
)
ENTROPY = r"H_i=-\sum_j a_{ij}\ln a_{ij}\ \text{nats},\qquad 0\le H_i\le\ln n"


def _picture(view: View, values: Values) -> Live:
    """Return the entropy of every head and of the chosen one at each token, and where the weights lead."""
    board, bars = _entropy(view, values)
    matrices, led = _rollout(view)
    return Live((board, matrices), drawings=(bars, led))


def _show(view: View) -> None:
    """Show how broadly each head looks, where the weights lead, and whether that is what counts."""
    show_entropy(view)
    show_rollout(view)
    show_evidence(view)


def _entropy(view: View, values: Values) -> tuple[Picture, Drawing]:
    layer, head = values[LAYER], values[HEAD]
    answer = ask(head_entropies, prompt=view.prompt)
    found, words = answer.value, strings("attention_flow")
    board = entropy_board(found.heads, found.shares, found.greatest, words | board_words(), chosen=(layer, head))
    greatest = t("attention.greatest", count=len(view.encoding), nats=f"{found.greatest:.3f}")
    words = words | {"greatest": greatest}
    bars = entropy_bars(found.tokens[layer, head], found.bounds, view.encoding.labels, words)
    title = t("attention.title_head", layer=layer, head=head)
    return (
        Picture("entropy", board, answer, pins=False, version=f"{layer}.{head}|{view.encoding.text}"),
        Drawing("entropy_tokens", bars, answer, "attention_entropy", title),
    )


@fragment
def show_entropy(view: View) -> None:
    """Show the entropy of every head, and of the chosen one at each token."""
    show_layer_and_head(view)
    board, bars = _entropy(view, FLOW.values(view))
    board_place, bars_place = st.columns(2, gap="large")
    with board_place:
        show_picture(board, on_cell=on_board, files=True)
    with bars_place:
        st.latex(ENTROPY)
        st.markdown(f"**{bars.label}**")
        show_drawing(bars)
    FLOW.follow(view)


def _rollout(view: View) -> tuple[Picture, Drawing]:
    answer = ask(attention_flow, prompt=view.prompt)
    found, words = answer.value, strings("attention_flow") | {"query": t("axis.query"), "key": t("axis.key")}
    labels = view.encoding.labels
    matrices = flow_matrices(found.rollout, found.last, labels, words)
    picture = Picture("rollout", matrices, answer, version=f"rollout|{view.encoding.text}")
    led = led_bars(found.verdict_rollout, found.verdict_last, labels, words)
    return picture, Drawing("led", led, answer, "attention_rests_on", rests_on(view))


def show_rollout(view: View) -> None:
    """Show rollout beside the last layer's weights: as matrices, and as what the verdict rests on."""
    st.subheader(t("attention.rollout"), anchor=False)
    show_prose(section("attention", "rollout"))
    st.latex(ROLLOUT)
    matrices, led = _rollout(view)
    show_picture(matrices, files=True)
    st.markdown(f"**{led.label}**")
    show_drawing(led)


def rests_on(view: View) -> str:
    """Return the title of the bars: which position the model's conclusion is read from."""
    outcome = view.outcome
    if outcome is not None and outcome.place is not None:
        return t("attention.pooled_place", token=plain(view.encoding.labels[outcome.place]), place=outcome.place)
    first = view.bundle.kind == "bert" or view.bundle.config.pooling == "cls"
    return t("attention.pooled_cls" if first else "attention.pooled_mean")


@fragment
def show_evidence(view: View) -> None:
    """Ask whether the weights agree with the effect of hiding each word, then measure it."""
    st.subheader(t("attention.evidence"), anchor=False)
    show_prose(section("attention", "evidence"))
    if not concludes(view):
        return
    substitute = SUBSTITUTE.show(view)
    options = options_of("attention.agree_{}", ("close", "loose", "none"))
    cover = ask_first(t("attention.agree_ask"), options, name="attention_rollout", about=view.bundle.name)
    brief, asked = len(view.encoding) <= BRIEF, {"prompt": view.prompt, "substitute": substitute}
    answer = awaited(
        verdict_evidence, t("attention.hiding"), key="attention_evidence", brief=brief, stays=True, **asked
    )
    if answer is None:
        return
    view = view.of(answer)
    found, words = answer.value, strings("attention_flow")
    winner = chart_word(view, found.occlusion.winner)
    words = words | {"points": t("attention.points", label=winner)}
    show_agreement(found, cover)
    with cover.picture():
        chart = hidden_bars(found.occlusion.change, view.encoding.labels, words)
        hiding = plain(t(f"attention.substitute_{substitute}"))
        title = t("attention.hidden_title", label=plain(winner), substitute=hiding)
        say(f"**{title}**")
        show_chart(chart, answer, key="hidden", stem="attention_occlusion", label=words["points"])


def show_agreement(found: Evidence, cover: Cover) -> None:
    """Say how far rollout and the last layer's weights agree with the effect, and judge the prediction."""
    rho = found.rollout_agrees.rho
    if math.isnan(rho):
        st.markdown(t("attention.no_rho", count=found.rollout_agrees.count))
        return
    cover.judge(agreement_word(rho))
    with cover.picture("_agreement"):
        for place, (name, agreed) in zip(
            st.columns(2), {"rollout": found.rollout_agrees, "last": found.last_agrees}.items(), strict=True
        ):
            say_number(t(f"attention.rho_{name}"), f"{agreed.rho:+.2f}", at=place, note=t("attention.rho_help"))
            say(chance_of(agreed), at=place, small=True)


def chance_of(agreed: RankCorrelation) -> str:
    """Return a sentence on how many random orders agree or disagree at least as much."""
    return t("attention.chance", chance=f"{agreed.chance:.1%}", count=agreed.count)


FLOW = Part("attention", "flow", _show, _picture, (LAYER, HEAD))
