"""Exhaustive search over a tiny vocabulary: what greedy misses, what beams find, and whether the best is right."""

import streamlit as st

from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider, Text, show_in_columns
from pages.kit.device import show_processor
from pages.kit.experiment import ask_first, options_of, say
from pages.kit.header import View
from pages.kit.number_format import markdown_table
from pages.kit.waiting import awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from pages.translation.beam import PENALTY
from pages.translation.figures.search import by_width_chart, ranked_chart
from pages.translation.translated import shown_gap
from transformer_core.analysis.translation.letter_search import (
    LENGTH,
    MOST,
    SYMBOLS,
    WIDTHS,
    Searched,
    Survey,
    letter_search,
    letter_survey,
    letters_of,
)
from transformer_core.training.corpora.sequences import Rule

RULE = Choice[Rule](
    "translation_rule", ("copy", "reverse", "sort"), label="translation.rule", words="translation.rule_{}"
)
EPOCHS = Choice("translation_epochs", (1, 2, 4, 8, 16), label="translation.epochs", default=4, kind=int)
SEED = Slider("translation_seed", 0, 20, 0, label="translation.seed")


def _letters(_: View, source: str) -> str:
    try:
        letters_of(source, RULE.read())
    except ValueError as error:
        raise ValueError(t("translation.letters_needed", most=LENGTH)) from error
    return source


LETTERS = Text("translation_letters", "abcab", label="translation.letters", parse=_letters)


def _search_word(width: int) -> str:
    return t("translation.greedy") if width == 1 else t("translation.beam_of", width=width)


def _finders(found: Searched, text: str) -> str:
    widths = [str(width) for width, own in zip(WIDTHS, found.texts, strict=True) if own == text]
    return t("translation.by_widths", widths=", ".join(widths)) if widths else ""


def _show_one(answer: Answer[Searched]) -> None:
    found = answer.value
    measured = t(
        "translation.search_told",
        source=found.source,
        answer=found.answer,
        count=f"{found.n_targets:,}",
        letters=SYMBOLS,
        most=MOST,
        steps=found.steps,
        loss=f"{found.loss:.3f}",
    )
    chart_place, table_place = st.columns(2, gap="large")
    with chart_place:
        st.markdown(f"**{t('translation.best_of_all', count=len(found.best_texts))}**")
        by = [_finders(found, text) for text in found.best_texts]
        right = [text == found.answer for text in found.best_texts]
        chart = ranked_chart(found.best_texts, found.best_scores, by, right, strings("translation_ranked"))
        show_chart(chart, answer, key="translation_ranked", stem="all_targets", label=t("translation.ranked_label"))
    with table_place:
        st.markdown(f"**{t('translation.each_search')}**")
        names = ("search", "text", "score", "weighed", "best")
        head = tuple(t(f"translation.col_{name}") for name in names)
        rows = [
            (
                _search_word(width),
                f"`{text or '∅'}`",
                f"{score:.3f}",
                f"{weighed:,}",
                t("translation.yes") if best else t("translation.no"),
            )
            for width, text, score, weighed, best in zip(
                WIDTHS, found.texts, found.scores, found.weighed, found.found, strict=True
            )
        ]
        every = f"{found.n_targets:,}"
        last = (t("translation.exhaustive"), f"`{found.best_texts[0] or '∅'}`", f"{found.best_scores[0]:.3f}", every)
        st.markdown(markdown_table(head, [*rows, (*last, t("translation.yes"))], right=3))
    st.caption(t("translation.own_data"))
    st.markdown(measured)
    verdict = "greedy_best" if found.found[0] else "greedy_missed"
    right_word = "best_right" if found.best_texts[0] == found.answer else "best_wrong"
    st.markdown(
        t(f"translation.{verdict}", gap=f"{shown_gap(found.best_scores[0], found.scores[0]):.3f}")
        + " "
        + t(f"translation.{right_word}", best=plain(found.best_texts[0] or "∅"), answer=found.answer)
    )


def _survey(rule: Rule, epochs: int, seed: int, penalty: float) -> None:
    st.subheader(t("translation.survey"), anchor=False)
    options, about = options_of("translation.misses_{}", ("few", "some", "many")), f"{rule} {epochs} {seed} {penalty}"
    cover = ask_first(section("translation", "try_search"), options, name="translation_search", about=about)
    with cover.picture():
        asked = {"rule": rule, "epochs": epochs, "seed": seed, "length_penalty": penalty}
        answer = awaited(
            letter_survey, t("translation.surveying"), key="translation_survey", height=420, stays=True, **asked
        )
        if answer is None:
            return
        found: Survey = answer.value
        curves = {"found": found.found, "right": found.right}
        chart = by_width_chart(found.widths, curves, strings("translation_survey"), percent=True)
        show_chart(chart, answer, key="translation_survey_chart", stem="search_survey", label=t("translation.survey"))
        if any(later < earlier for earlier, later in zip(found.found, found.found[1:], strict=False)):
            say(t("translation.wider_loses"), small=True)
    missed = 1 - float(found.found[0])
    outcome = "few" if missed < 0.1 else "some" if missed <= 0.5 else "many"
    measured = t(
        "translation.survey_measured",
        missed=len(found.missed),
        count=found.n_sources,
        widest=found.widths[-1],
        left=round((1 - float(found.found[-1])) * found.n_sources),
        right=f"{found.best_right:.0%}",
        greedy_right=f"{found.right[0]:.0%}",
    )
    cover.judge(outcome, measured, of=answer)


def _show(_: View) -> None:
    """Show the controls, the searches of one source, and a survey over many sources."""
    show_processor()
    rule, epochs, seed = show_in_columns(None, RULE, EPOCHS, SEED, widths=[2, 2.4, 1.4], gap="medium")
    source_place, penalty_place = st.columns([2, 2.4], gap="medium")
    with source_place:
        LETTERS.show_box()
    with penalty_place:
        penalty = PENALTY.show()
    source = LETTERS.note()
    if source is None:
        return
    asked = {"rule": rule, "source": source, "epochs": epochs, "seed": seed, "length_penalty": penalty}
    answer = awaited(
        letter_search, t("translation.training"), key="translation_search", height=480, stays=True, **asked
    )
    if answer is not None:
        _show_one(answer)
    _survey(rule, epochs, seed, penalty)


SEARCH = Part("translation", "search", _show)
