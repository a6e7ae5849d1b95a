"""The page's part on editing: two sentences that differ in a word, and from which layer their verdicts differ."""

from collections.abc import Sequence

import streamlit as st

from pages.encoder.figures import spread_figure, stage_lines
from pages.encoder.names import class_name, depth_names, figure_words
from pages.encoder.tokens import has_words
from pages.kit.asking import Answer, ask, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Text, Values
from pages.kit.experiment import ask_first, fragment, say
from pages.kit.glossary import show_prose
from pages.kit.header import View, encoded_whole, part_read, pause_of
from pages.kit.live import Live
from pages.kit.matrix import Picture, export_picture, show_picture
from pages.kit.verdict import show_verdict, verdict_of
from pages.language import plain, section, t
from pages.room import Part
from transformer_core.analysis.counter_examples import counter_examples
from transformer_core.analysis.encoder.two_sentences import SentencePair, sentence_pair

SIDES = ("first", "second")


def _suggested(view: View) -> str:
    found = ask_once(counter_examples, prompt=view.prompt).value.found
    exchanged = [each.text for each in found if each.new]  # where nothing is left out, positions stay comparable
    return next(iter([*exchanged, *(each.text for each in found)]), view.encoding.text)


def _pair(view: View, other: str) -> Answer[SentencePair]:
    """Read both sentences.

    Raises:
        ValueError: the first one has no words, or the second one is empty or too long; the message is for the page.
    """
    if all(view.encoding.special):
        raise ValueError(t("encoder.no_words"))
    return ask(sentence_pair, prompt=view.prompt, other=View(view.bundle, encoded_whole(view.bundle, other)).prompt)


OTHER = Text(
    "encoder_other",
    _suggested,
    label="encoder.other",
    parse=_pair,
    pause=lambda _: pause_of("encoder", "edit"),
)


def _picture(view: View, values: Values) -> Live:
    """Return both verdicts, how the difference spreads, and where the margins part.

    Raises:
        ValueError: the sentences are the same.
    """
    if _alike(view, values[OTHER]):
        raise ValueError(t("encoder.same_sentence"))
    return _drawn(view, values[OTHER])


def _alike(view: View, answer: Answer[SentencePair]) -> bool:
    """Return whether the sentences are the same, or nothing in one stands for anything in the other."""
    return not len(answer.value.pairs) or answer.arguments["other"].encoding.ids == view.encoding.ids


def _drawn(view: View, answer: Answer[SentencePair]) -> Live:
    found = answer.value
    verdicts = {
        f"encoder_{name}": verdict_of(view.bundle.labels, probabilities.tolist())
        for name, probabilities in zip(SIDES, found.probabilities, strict=True)
    }
    if _alike(view, answer):
        return Live(verdicts=verdicts)
    figure = spread_figure(found.spread, depth_names(view, short=True), found.labels, figure_words())
    picture = Picture("encoder_spread", figure, answer, version=f"spread|{'|'.join(found.labels)}")
    names, stage = depth_names(view), t("encoder.axis_depth")
    axis = t("encoder.axis_margin", winner=class_name(view, found.winner), rival=class_name(view, found.rival))
    series = {t(f"encoder.{name}_sentence"): margins for name, margins in zip(SIDES, found.margins, strict=True)}
    margins = stage_lines(names, series, {"stage": stage, "value": axis}, level=0.0)
    far = {"stage": stage, "value": t("encoder.axis_distance")}
    distances = stage_lines(names, {t("encoder.sentence_distance"): found.distances}, far)
    drawings = (
        Drawing("encoder_pair", margins, answer, "encoder_margins", axis),
        Drawing("encoder_distance", distances, answer, "encoder_distances", far["value"]),
    )
    return Live((picture,), verdicts, drawings=drawings)


@fragment
def _show(view: View) -> None:
    """Show a second sentence to edit, both verdicts, how the difference spreads, and where the margins part."""
    if not has_words(view):
        return
    _write_other(view)
    answer = OTHER.note(view)
    if answer is None:
        return
    if said := part_read(view.bundle, OTHER.written(view)):
        st.caption(said)
    found, live = answer.value, _drawn(view, answer)
    for place, name in zip(st.columns(2, gap="large"), SIDES, strict=True):
        with place:
            st.caption(t(f"encoder.{name}_sentence"))
            show_verdict(live.verdicts[f"encoder_{name}"], place=f"encoder_{name}")
    EDIT.follow(view)
    if not len(found.pairs):
        st.info(t("encoder.nothing_aligned"), icon=":material/info:")
        return
    if _alike(view, answer):
        st.info(t("encoder.same_sentence"), icon=":material/info:")
        return
    (spread,) = live.matrices
    _show_spread(spread)
    _show_parting(view, live.drawings)


def _write_other(view: View) -> None:
    """Show the second sentence, which starts as the suggested one, and the button that returns to that."""
    text_place, button_place = st.columns([5, 1.4], vertical_alignment="bottom")
    with button_place:
        st.button(
            t("encoder.suggest"),
            icon=":material/lightbulb:",
            on_click=OTHER.forget,
            key="encoder_suggest",
            help=t("encoder.suggest_help"),
            width="stretch",
        )
    with text_place:
        OTHER.show_box(view)


def _show_spread(spread: Picture) -> None:
    found: SentencePair = spread.answer.value
    show_picture(spread)
    show_prose(section("encoder", "spread"))
    st.markdown(t("encoder.spread_start", differ=int((found.spread[0] > 0).sum()), count=len(found.labels)))
    export_picture(spread)
    if found.farthest >= 0:
        token = plain(found.labels[found.farthest])
        st.caption(t("encoder.farthest_equal", token=token, distance=f"{found.spread[-1, found.farthest]:.2f}"))


def _show_parting(view: View, drawings: Sequence[Drawing]) -> None:
    answer = drawings[0].answer
    found, names = answer.value, depth_names(view)
    options = {str(depth): name for depth, name in enumerate(names)}
    about = f"{view.name} | {answer.arguments['other'].text}"
    cover = ask_first(section("encoder", "try_edit"), options, name="encoder_edit", about=about)
    cover.judge(str(found.separate_from))
    with cover.picture():
        say(
            t(
                "encoder.parting_measured",
                depth=names[found.separate_from],
                there=f"{found.margins[0, found.separate_from] - found.margins[1, found.separate_from]:+.2f}",
                last=f"{found.margins[0, -1] - found.margins[1, -1]:+.2f}",
                label=class_name(view, found.winner),
                moved=f"{100 * found.moved:+.1f}",
            )
        )
        for place, drawing in zip(st.columns(2, gap="large"), drawings, strict=True):
            with place:
                show_drawing(drawing)
        say(section("encoder", "edit_after"))


EDIT = Part("encoder", "edit", _show, _picture, (OTHER,))
