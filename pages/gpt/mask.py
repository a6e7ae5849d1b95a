"""The page's part on the causal mask: a later word is changed, and the mask is taken off a trained model."""

from contextlib import nullcontext
from typing import Any

import streamlit as st

from pages.gpt.figures import moved_board, surprise_pairs
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import show_chart
from pages.ui.experiment import Cover, ask_first, say
from pages.ui.header import View, pause_of
from pages.ui.language import plain, section, strings, t
from pages.ui.last_text import in_words, read_and_tell
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.number_format import significant
from pages.ui.url import current, slid, slide, text_input
from transformer_core.analysis.gpt.causality import Changed, Unmasked, both_readings, changed_word, without_mask

WORDS = "dragon"
MOST_LETTERS = 60
PLACE = "gpt_changed"  # counted from the end
ALIKE = 0.05


def written(difference: float) -> str:
    """Write a difference; one of 0 is said to be exact."""
    return t("gpt.exactly_zero") if difference == 0 else significant(difference)


def _ends(size: int) -> dict[str, Any]:
    return {"low": -size, "high": -1, "name": PLACE, "default": -max(1, size // 3)}


def _chosen_place(size: int) -> int:
    """Return the place that is changed, without its slider."""
    return size + int(slid(**_ends(size))) if size > 1 else size - 1


def live_mask(view: View) -> Live:
    """Return what the changed word moves with the mask and without it.

    Raises:
        ValueError: the words cannot be read, or nothing changes.
    """
    words = str(current("gpt_words") or WORDS)
    return _live(view, _changed(view, _chosen_place(len(view.encoding)), words))


def _live(view: View, answer: Answer[Changed]) -> Live:
    found = answer.value
    if found.place < 0:
        raise ValueError(t("gpt.nothing_changed"))
    board = moved_board(
        found.masked,
        found.unmasked,
        found.before,
        found.after,
        _words(),
        strings("matrix") | strings("gpt_matrix"),
        version=f"{view.encoding.text}|{answer.arguments['words']}|{found.place}",
    )
    return Live((Picture("gpt_moved", board, answer),))


def mask_part(view: View) -> None:
    """Show what a changed word moves with the mask and without it, then the surprisal without the mask."""
    size = len(view.encoding)
    where, what = st.columns(2, gap="large")
    with where:
        if size > 1:
            slide(t("gpt.changed"), **_ends(size))
        place = _chosen_place(size)
    with what:
        words = text_input(t("gpt.words"), name="gpt_words", default=WORDS, pause=pause_of("gpt", "mask"))
    answer = read_and_tell("gpt_words", words, WORDS, lambda words: _changed(view, place, words))
    if answer is None:
        return
    if answer.value.place < 0:
        st.info(t("gpt.nothing_changed"), icon=":material/info:")
    else:
        _moved(view, answer, answer.arguments["words"])
    slider = {PLACE: place - size if place - size != _ends(size)["default"] else ""}
    follow_finger("gpt", "mask", view, boxes=("gpt_words",), sliders=slider)
    st.caption(t("gpt.changed_note", token=plain(view.encoding.labels[place]), place=place))
    _off(view)


def _changed(view: View, place: int, words: str) -> Answer[Changed]:
    """Read the text with other words from a place on.

    Raises:
        ValueError: if the words are missing, too long or cannot be read; its message is for the page.
    """
    if not words.strip() or len(words) > MOST_LETTERS:
        raise ValueError(t("gpt.words_needed", most=MOST_LETTERS))
    before = view.encoding.surface(place)
    if before[:1].isspace() and not words[:1].isspace() and len(before) > 1:
        words = f" {words}"
    with in_words():
        own = ask_once(both_readings, **view.asked).value
        return ask_once(changed_word, {"own": own}, **view.asked, place=place, words=words)


def _moved(view: View, answer: Answer[Changed], words: str) -> None:
    found = answer.value
    start, version = found.place, f"{view.encoding.text}|{words}|{found.place}"
    cover = None
    if start:
        options = {name: t(f"gpt.moves_{name}") for name in ("none", "some", "all")}
        question = section("gpt", "try_unmasked").format(count=start)
        cover = ask_first(question, options, name="gpt_moved", about=f"{view.bundle.name} {version}")
    else:
        st.info(t("gpt.nothing_before"), icon=":material/info:")
    with cover.picture() if cover else nullcontext():
        (board,) = (one for one in _live(view, answer).pictures if isinstance(one, Picture))
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
    options = {name: t(f"gpt.off_{name}") for name in ("better", "alike", "worse")}
    cover = ask_first(
        section("gpt", "try_off"), options, name="gpt_off", about=f"{view.bundle.name} {view.encoding.text}"
    )
    answer = ask_once(without_mask, **view.asked)
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
