"""Teacher forcing: the probability of each word of a typed target, given the right words before it."""

from contextlib import nullcontext

import streamlit as st

from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.controls import Text
from pages.kit.experiment import Cover, ask_first, say, say_number
from pages.kit.header import View, shown_word
from pages.kit.refusals import in_words, require_length
from pages.language import plain, section, strings, t
from pages.room import Part
from pages.translation.figures.charts import forced_bars
from pages.translation.translated import translated
from transformer_core.analysis.translation.teacher_forcing import Forced, forced_target
from transformer_core.prompt import Prompt

MOST_CHARACTERS = 600


def _forced(view: View, target: str) -> Answer[Forced]:
    most = min(128, view.bundle.config.max_len)
    return ask(forced_target, prompt=Prompt(view.bundle, view.encoding.text, most), target=target)


def _readable(view: View, target: str) -> Answer[Forced]:
    """Score a typed target.

    Raises:
        ValueError: the target is too long or cannot be read; the message is meant for the page.
    """
    require_length(target, MOST_CHARACTERS)
    with in_words():
        return _forced(view, target)


TARGET = Text(
    "translation_target",
    lambda view: translated(view).value.text,
    label="translation.own_target",
    parse=_readable,
)


def _guessed(view: View, found: Forced, target: str) -> Cover:
    """Ask which word is the least likely before the bars are shown, and judge the answer."""
    places = sorted(range(len(found.words)), key=lambda place: found.probabilities[place])
    options = {str(place): plain(shown_word(found.words[place])) for place in sorted(places[:4])}
    question = section("translation", "try_forced")
    cover = ask_first(question, options, name="translation_forced", about=f"{view.name} {target}")
    least = places[0]
    measured = t(
        "translation.least_measured",
        word=options[str(least)],
        chance=f"{found.probabilities[least]:.3%}",
        rank=f"{found.ranks[least]:,}",
        favourite=plain(shown_word(found.favourites[least])),
    )
    cover.judge(str(least), measured)
    return cover


def _numbers(view: View, found: Forced, same: bool) -> None:
    sum_place, each_place, first_place = st.columns(3)
    say_number(t("translation.sum_log"), f"{found.log_prob:.3f}", at=sum_place)
    say_number(t("translation.per_word"), f"{found.per_word:.3f}", at=each_place)
    first = int((found.ranks == 1).sum())
    say_number(t("translation.firsts"), f"{first} / {len(found.words)}", at=first_place)
    if same:
        return
    written = translated(view).value
    own = _forced(view, written.text).value
    likelier = "yours" if found.log_prob > own.log_prob else "models"
    measured = t(
        f"translation.likelier_{likelier}",
        yours=f"{found.log_prob:.3f}",
        models=f"{own.log_prob:.3f}",
        text=plain(written.text or "∅"),
    )
    say(measured)


def _show(view: View) -> None:
    """Show the text input of the target, its words as bars, and the comparison with the model's own translation."""
    TARGET.show_box(view)
    answer = TARGET.note(view)
    if answer is None:
        return
    found, target = answer.value, answer.arguments["target"]
    if found.unknown:
        st.warning(t("text.unknown", count=found.unknown, all=len(found.words) - 1), icon=":material/translate:")
    same = found.token_ids == translated(view).value.token_ids
    with nullcontext() if same else _guessed(view, found, target).picture():
        words = strings("translation_forced")
        chart = forced_bars(
            found.words, found.probabilities, found.ranks, found.favourites, found.favourite_probabilities, words
        )
        show_chart(chart, answer, key="translation_forced", stem="teacher_forcing", label=t("translation.forced_label"))
        _numbers(view, found, same)
    if same:
        st.caption(t("translation.own_is_greedy"))


FORCED = Part("translation", "forced", _show)
