"""The page's part on editing: two sentences that differ in a word, and from which layer their verdicts differ."""

import streamlit as st

from pages.encoder.figures import spread_figure, stage_lines
from pages.encoder.names import board_words, class_name, depth_names
from pages.encoder.tokens import has_words
from pages.ui.asking import Answer, ask, ask_once
from pages.ui.boxes import ask_first, say
from pages.ui.charts import show_chart
from pages.ui.exports import export_matrix
from pages.ui.glossary import tell
from pages.ui.header import MOST_CHARACTERS, View
from pages.ui.language import plain, section, strings, t
from pages.ui.last_text import read_and_tell
from pages.ui.matrix import show_matrix
from pages.ui.url import set_choice, suggested_text_input
from pages.ui.verdict import show_verdict, verdict_of
from transformer_core.analysis.counter_examples import counter_examples
from transformer_core.analysis.encoder.two_sentences import SentencePair, sentence_pair

OTHER = "encoder_other"


@st.fragment
def edit_part(view: View) -> None:
    """Show a second sentence to edit, both verdicts, how the difference spreads, and where the margins part."""
    if not has_words(view):
        return
    written, suggested = _write_other(view)
    answer = read_and_tell(OTHER, written, suggested, lambda other: _pair(view, other))
    if answer is None:
        return
    found = answer.value
    for place, name, probabilities in zip(
        st.columns(2, gap="large"), ("first", "second"), found.probabilities, strict=True
    ):
        with place:
            st.caption(t(f"encoder.{name}_sentence"))
            show_verdict(verdict_of(view.bundle.labels, probabilities.tolist()))
    if not len(found.pairs):
        st.info(t("encoder.nothing_aligned"), icon=":material/info:")
        return
    if not any(found.changed) and len(found.pairs) == len(view.encoding):
        st.info(t("encoder.same_sentence"), icon=":material/info:")
        return
    _show_spread(view, answer)
    _show_parting(view, answer)


def _pair(view: View, other: str) -> Answer[SentencePair]:
    """Read both sentences.

    Raises:
        ValueError: the second one is empty or too long; the message is for the page.
    """
    if not other.strip() or len(other) > MOST_CHARACTERS:
        raise ValueError(t("encoder.other_unreadable", most=f"{MOST_CHARACTERS:,}"))
    most = min(view.bundle.config.max_len, max(len(view.encoding), 16) + 16)
    return ask(sentence_pair, **view.asked | {"n_tokens": most}, other=other)


def _write_other(view: View) -> tuple[str, str]:
    """Show the second sentence, which starts as the suggested one, and return both."""
    found = ask_once(counter_examples, **view.asked).value.found
    exchanged = [each.text for each in found if each.new]  # where nothing is left out, positions stay comparable
    suggested = next(iter([*exchanged, *(each.text for each in found)]), view.encoding.text)
    text_place, button_place = st.columns([5, 1.4], vertical_alignment="bottom")
    with button_place:
        st.button(
            t("encoder.suggest"),
            icon=":material/lightbulb:",
            on_click=set_choice,
            args=(OTHER, suggested),
            key="encoder_suggest",
            help=t("encoder.suggest_help"),
            width="stretch",
        )
    with text_place:
        return suggested_text_input(t("encoder.other"), suggested, name=OTHER), suggested


def _show_spread(view: View, answer: Answer[SentencePair]) -> None:
    found = answer.value
    figure = spread_figure(
        found.spread,
        depth_names(view, short=True),
        found.labels,
        strings("encoder"),
        board_words(),
        version=f"spread|{'|'.join(found.labels)}",
    )
    show_matrix(figure, answer, key="encoder_spread")
    tell(section("encoder", "spread"))
    st.markdown(t("encoder.spread_start", differ=int((found.spread[0] > 0).sum()), count=len(found.labels)))
    export_matrix(figure, answer, key="encoder_spread")
    if found.farthest >= 0:
        token = plain(found.labels[found.farthest])
        st.caption(t("encoder.farthest_equal", token=token, distance=f"{found.spread[-1, found.farthest]:.2f}"))


def _show_parting(view: View, answer: Answer[SentencePair]) -> None:
    found, names = answer.value, depth_names(view)
    options = {str(depth): name for depth, name in enumerate(names)}
    about = f"{view.bundle.name} {view.encoding.text} | {answer.arguments['other']}"
    cover = ask_first(section("encoder", "try_edit"), options, name="encoder_edit", about=about)
    cover.judge(str(found.told_apart))
    with cover.picture():
        winner, rival = class_name(view, found.winner), class_name(view, found.rival)
        say(
            t(
                "encoder.parting_measured",
                depth=names[found.told_apart],
                there=f"{found.margins[0, found.told_apart] - found.margins[1, found.told_apart]:+.2f}",
                last=f"{found.margins[0, -1] - found.margins[1, -1]:+.2f}",
                label=winner,
                moved=f"{100 * found.moved:+.1f}",
            )
        )
        margins_place, distance_place = st.columns(2, gap="large")
        stage = t("encoder.axis_depth")
        with margins_place:
            series = {t("encoder.first_sentence"): found.margins[0], t("encoder.second_sentence"): found.margins[1]}
            words = {"stage": stage, "value": t("encoder.axis_margin", winner=winner, rival=rival)}
            chart = stage_lines(names, series, words, level=0.0)
            show_chart(chart, answer, key="encoder_pair", stem="encoder_margins", label=words["value"])
        with distance_place:
            words = {"stage": stage, "value": t("encoder.axis_distance")}
            chart = stage_lines(names, {t("encoder.sentence_distance"): found.distances}, words)
            show_chart(chart, answer, key="encoder_distance", stem="encoder_distances", label=words["value"])
        say(section("encoder", "edit_after"))
