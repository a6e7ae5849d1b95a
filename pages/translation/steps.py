"""The translation step by step: the word written, its likeliest alternatives, and where the decoder looked."""

from math import exp

import streamlit as st

from pages.translation.figures.charts import likeliest_bars, lines_chart
from pages.translation.figures.matrices import step_rows
from pages.translation.translated import (
    choose_weights,
    over_word,
    show_sentences,
    slide_to_default,
    translated,
    weights_over,
)
from pages.ui.boxes import ask_first, lazy_box
from pages.ui.charts import show_chart
from pages.ui.exports import export_matrix
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.matrix import show_matrix
from pages.ui.number_format import significant
from pages.ui.pickers import choose_layer, shown_word
from transformer_core.analysis.translation.greedy_steps import Written

LIKELIEST, LEAST_LIKELY = 0.5, 0.05


def _choose_step(written: Written) -> int:
    """Show the slider of steps and return the step, from 0; at first the one where the model was least sure."""
    count = len(written.words)
    if count == 1:
        return 0
    unsure = int(written.probabilities.argmin())
    return slide_to_default(t("translation.step"), 0, count - 1, name="translation_step", default=unsure)


def _show_rows(view: View, written: Written, step: int, layer: int | None) -> None:
    """Show every head's two rows at this step: over the words so far, and over the source.

    Args:
        layer: the layer chosen above; None to choose it here.
    """
    tell(section("translation", "rows"))
    if layer is None:
        layer = choose_layer(t("translation.rows_layer"), view)
    figure = step_rows(
        written.self_weights[layer, :, step, : step + 1],
        written.cross_weights[layer, :, step],
        written.read[: step + 1],
        written.source,
        strings("translation_rows"),
        strings("matrix"),
        version=f"rows {layer}.{step}|{view.encoding.text}",
    )
    show_matrix(figure, translated(view), key="translation_rows")
    export_matrix(figure, translated(view), key="translation_rows")


def _whole_experiment(view: View, written: Written) -> None:
    """Ask how probable the whole translation is, then show the product of its probabilities."""
    box = lazy_box(t("try.heading"), icon=":material/science:", key="translation_whole_open")
    if box is None:
        return
    with box:
        ends = {"high": f"{LIKELIEST:.0%}", "low": f"{LEAST_LIKELY:.0%}"}
        options = {name: t(f"translation.whole_{name}", **ends) for name in ("over", "between", "under")}
        question = section("translation", "try_whole").format(count=len(written.words))
        cover = ask_first(question, options, name="translation_whole", about=f"{view.bundle.name} {view.encoding.text}")
        count, whole = len(written.words), exp(written.log_prob)
        outcome = "over" if whole > LIKELIEST else "under" if whole < LEAST_LIKELY else "between"
        measured = t(
            "translation.whole_measured",
            count=count,
            whole=f"{significant(100 * whole, 3)}%",
            mean=f"{exp(written.log_prob / count):.1%}",
            least=f"{written.probabilities.min():.1%}",
        )
        cover.judge(outcome, measured)


def show_steps(view: View) -> None:
    """Show both sentences, the slider of steps, and one step in detail."""
    answer = translated(view)
    written = answer.value
    sentences = st.container()
    step = _choose_step(written)
    with sentences:
        show_sentences(written, step)
        if not written.ended:
            st.caption(f":material/content_cut: {t('translation.cut', count=len(written.words))}")
    lines_place, bars_place = st.columns([6, 5], gap="large")
    with bars_place:
        word, chance = plain(shown_word(written.words[step])), f"{written.probabilities[step]:.2%}"
        st.markdown(f"**{t('translation.came', step=step, word=word, chance=chance)}**")
        chart = likeliest_bars(written.others[step], written.likeliest[step], strings("translation_bars"))
        show_chart(
            chart, answer, key="translation_bars", stem="translation_likeliest", label=t("translation.bars_label")
        )
        st.caption(t("translation.others_note", count=f"{view.bundle.config.target_vocab_size or 0:,}"))
    with lines_place:
        over, layer, head = choose_weights(view)
        weights = weights_over(written.cross_weights, over, layer, head)
        st.markdown(f"**{t('translation.lines', word=word, whose=over_word(over, layer, head))}**")
        chart = lines_chart(weights, written.source, written.words, strings("translation_lines"), step=step)
        show_chart(chart, answer, key="translation_lines", stem="translation_lines", label=t("translation.lines_label"))
    _show_rows(view, written, step, None if over == "all" else layer)
    _whole_experiment(view, written)
