"""Exhaustive search over a tiny vocabulary: what greedy misses, what beams find, and whether the best is right."""

import streamlit as st

from pages.translation.figures.search import by_width_chart, ranked_chart
from pages.translation.translated import shown_gap
from pages.ui.asking import Answer
from pages.ui.charts import show_chart
from pages.ui.device import tell_of_processor
from pages.ui.experiment import as_old, ask_first, say
from pages.ui.language import plain, section, strings, t
from pages.ui.last_text import read_and_tell
from pages.ui.number_format import markdown_table
from pages.ui.url import choose, slide, text_input
from pages.ui.waiting import awaited
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

RULES: tuple[Rule, ...] = ("copy", "reverse", "sort")
EPOCHS = (1, 2, 4, 8, 16)
SEEDS = 20
LETTERS = "abcab"


def _letters(source: str, rule: Rule) -> str:
    try:
        letters_of(source, rule)
    except ValueError as error:
        raise ValueError(t("translation.letters_needed", most=LENGTH)) from error
    return source


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
    options = {name: t(f"translation.misses_{name}") for name in ("few", "some", "many")}
    cover = ask_first(
        section("translation", "try_search"),
        options,
        name="translation_search",
        about=f"{rule} {epochs} {seed} {penalty}",
    )
    judgement = st.container()
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
    with judgement, as_old(answer, key="translation_survey"):
        cover.judge(outcome, measured)


def show_search() -> None:
    """Show the controls, the searches of one source, and a survey over many sources."""
    tell_of_processor()
    rule_place, epochs_place, seed_place = st.columns([2, 2.4, 1.4], gap="medium")
    with rule_place:
        rules = {rule: t(f"translation.rule_{rule}") for rule in RULES}
        rule: Rule = choose(t("translation.rule"), rules, name="translation_rule", default="copy")  # type: ignore[assignment]
    with epochs_place:
        counts = {str(count): str(count) for count in EPOCHS}
        epochs = int(choose(t("translation.epochs"), counts, name="translation_epochs", default="4"))
    with seed_place:
        seed = int(slide(t("translation.seed"), 0, SEEDS, name="translation_seed", default=0))
    source_place, penalty_place = st.columns([2, 2.4], gap="medium")
    with source_place:
        source = text_input(t("translation.letters"), name="translation_letters", default=LETTERS)
    with penalty_place:
        penalty = slide(
            t("translation.penalty"), 0.0, 2.0, name="translation_penalty", default=0.6, step=0.1, format="%.1f"
        )
    source = read_and_tell("translation_letters", source, LETTERS, lambda source: _letters(source, rule))
    if source is None:
        return
    asked = {"rule": rule, "source": source, "epochs": epochs, "seed": seed, "length_penalty": penalty}
    answer = awaited(
        letter_search, t("translation.training"), key="translation_search", height=480, stays=True, **asked
    )
    if answer is not None:
        _show_one(answer)
    _survey(rule, epochs, seed, penalty)
