"""The part that writes word by word: which word came, what else could have, and where the decoder looked."""

from math import exp

import streamlit as st

from pages.translation.figures.attention import step_rows
from pages.translation.figures.steps import likeliest_bars, lines_chart
from pages.translation.shared import choose_step, choose_weights, over_word, show_sentences, translated, weights_over
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


def show_steps(view: View) -> None:
    """Show the sentences, the scrubber, and one step from all sides."""
    answer = translated(view)
    written = answer.value
    sentences = st.container()
    step = choose_step(written)
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
    show_rows(view, written, step, None if over == "all" else layer)
    whole_experiment(view, written)


def show_rows(view: View, written: Written, step: int, layer: int | None) -> None:
    """Show every head's two rows at this step: over the words so far, and over the source.

    Args:
        layer: the one chosen above; None where none was, and it is chosen here.
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


def whole_experiment(view: View, written: Written) -> None:
    """Ask how probable the whole translation is, then multiply."""
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
        told = t(
            "translation.whole_measured",
            count=count,
            whole=f"{significant(100 * whole, 3)}%",
            mean=f"{exp(written.log_prob / count):.1%}",
            least=f"{written.probabilities.min():.1%}",
        )
        cover.judge(outcome, told)
