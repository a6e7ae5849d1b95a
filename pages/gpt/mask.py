"""The page's part on the causal mask: a later word is changed, and the mask is taken off a trained model."""

from contextlib import nullcontext
from dataclasses import replace

import streamlit as st

from pages.gpt.figures import moved_board, surprise_pairs
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Slider, Text, Values
from pages.kit.experiment import Cover, ask_first, options_of, say
from pages.kit.header import View, pause_of
from pages.kit.live import Live
from pages.kit.matrix import Picture, export_picture, show_picture
from pages.kit.number_format import significant
from pages.kit.refusals import in_words
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.gpt.causality import Changed, Unmasked, both_readings, changed_word, without_mask

MOST_LETTERS = 60
ALIKE = 0.05


def written(difference: float) -> str:
    """Write a difference; one of 0 is said to be exact."""
    return t("gpt.exactly_zero") if difference == 0 else significant(difference)


PLACE = Slider(  # counted from the end
    "gpt_changed",
    lambda view: -len(view.encoding),
    -1,
    lambda view: -max(1, len(view.encoding) // 3),
    label="gpt.changed",
)


def _changed(view: View, words: str) -> Answer[Changed]:
    """Read the text with other words from the chosen place on.

    Raises:
        ValueError: if the words are missing, too long or cannot be read; its message is for the page.
    """
    if not words.strip() or len(words) > MOST_LETTERS:
        raise ValueError(t("gpt.words_needed", most=MOST_LETTERS))
    place = len(view.encoding) + PLACE.read(view)
    before = view.encoding.surface(place)
    if before[:1].isspace() and not words[:1].isspace() and len(before) > 1:
        words = f" {words}"
    with in_words():
        own = ask_once(both_readings, prompt=view.prompt).value
        return ask_once(changed_word, {"own": own}, prompt=view.prompt, place=place, words=words)


WORDS = Text("gpt_words", "dragon", label="gpt.words", parse=_changed, pause=lambda _: pause_of("gpt", "mask"))


def _picture(view: View, values: Values) -> Live:
    """Return what the changed word moves with the mask and without it.

    Raises:
        ValueError: nothing changes.
    """
    answer = values[WORDS]
    found = answer.value
    if found.place < 0:
        raise ValueError(t("gpt.nothing_changed"))
    board = moved_board(found.masked, found.unmasked, found.before, found.after, _words())
    board = replace(board, strings=strings("gpt_matrix"))
    version = f"{view.encoding.text}|{answer.arguments['words']}|{found.place}"
    return Live((Picture("gpt_moved", board, answer, version=version),))


def _show(view: View) -> None:
    """Show what a changed word moves with the mask and without it, then the surprisal without the mask."""
    where, what = st.columns(2, gap="large")
    with where:
        place = len(view.encoding) + PLACE.show(view)
    with what:
        WORDS.show_box(view)
    answer = WORDS.note(view)
    if answer is None:
        return
    if answer.value.place < 0:
        st.info(t("gpt.nothing_changed"), icon=":material/info:")
    else:
        _moved(view, answer.value, answer.arguments["words"])
    MASK.follow(view)
    st.caption(t("gpt.changed_note", token=plain(view.encoding.labels[place]), place=place))
    _off(view)


def _moved(view: View, found: Changed, words: str) -> None:
    start, version = found.place, f"{view.encoding.text}|{words}|{found.place}"
    cover = None
    if start:
        options = options_of("gpt.moves_{}", ("none", "some", "all"))
        question = section("gpt", "try_unmasked").format(count=start)
        cover = ask_first(question, options, name="gpt_moved", about=f"{view.bundle.name} {version}")
    else:
        st.info(t("gpt.nothing_before"), icon=":material/info:")
    with cover.picture() if cover else nullcontext():
        (board,) = MASK.live(view).matrices
        show_picture(board)
        say(t("gpt.moved_note"), small=True)
        export_picture(board)
    if cover:
        _judge(found, cover)
    st.metric(t("gpt.earlier_masked"), written(found.earlier_masked), help=t("gpt.earlier_help"))


def _judge(found: Changed, cover: Cover) -> None:
    """Judge the prediction of how many places before the changed one move without the mask."""
    before = found.place
    outcome = "none" if not found.moved_unmasked else "all" if found.moved_unmasked == before else "some"
    measured = t(
        "gpt.moved_measured",
        moved=found.moved_unmasked,
        count=before,
        greatest=written(found.earlier_unmasked),
        chance=f"{found.chance_unmasked[:before].max():.1%}",
    )
    cover.judge(outcome, measured)


def _words() -> dict[str, str]:
    words = {name: t(f"gpt.{name}") for name in ("masked", "unmasked", "moved")}
    return words | {
        "stage": t("gpt.lens_stage"),
        "place": t("gpt.token"),
        "embedding": t("gpt.lens_embedding"),
        "layer": t("axis.layer"),
    }


def _off(view: View) -> None:
    st.subheader(t("gpt.off_heading"), anchor=False)
    if len(view.encoding) == 1:
        st.info(t("gpt.nothing_before"), icon=":material/info:")
        return
    options = options_of("gpt.off_{}", ("better", "alike", "worse"))
    cover = ask_first(section("gpt", "try_off"), options, name="gpt_off", about=view.name)
    answer = ask_once(without_mask, prompt=view.prompt)
    found = answer.value
    cover.judge(_outcome(found), _measured(found))
    with cover.picture():
        words = {name: t(f"gpt.{name}") for name in ("masked", "unmasked", "token")} | {"bits": t("gpt.bits")}
        show_chart(
            surprise_pairs(found.labels, found.masked, found.unmasked, words),
            answer,
            key="gpt_off",
            stem="gpt_without_mask",
            label=t("gpt.off_label"),
        )
        say(t("gpt.off_note"), small=True)
        say(section("gpt", "off_after"))


def _outcome(found: Unmasked) -> str:
    change = found.mean_unmasked / found.mean_masked - 1 if found.mean_masked else 0.0
    return "alike" if abs(change) < ALIKE else "worse" if change > 0 else "better"


def _measured(found: Unmasked) -> str:
    return t(
        "gpt.off_measured",
        masked=f"{found.mean_masked:.2f}",
        unmasked=f"{found.mean_unmasked:.2f}",
        right_masked=found.right_masked,
        right=found.right_unmasked,
        count=len(found.labels) - 1,
    )


MASK = Part("gpt", "mask", _show, _picture, (PLACE, WORDS))
