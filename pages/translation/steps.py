"""The translation step by step: the word written, its likeliest alternatives, and where the decoder looked."""

from math import exp

import streamlit as st

from pages.translation.figures.charts import likeliest_bars, lines_chart
from pages.translation.figures.matrices import step_rows
from pages.translation.translated import (
    STYLE,
    choose_weights,
    chosen_weights,
    over_word,
    sentences,
    slide_to_default,
    translated,
    translated_so_far,
    weights_choices,
    weights_over,
)
from pages.ui.charts import Drawing, show_drawing
from pages.ui.experiment import ask_first, lazy_box
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.live import Live, follow_finger, show_lines
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.number_format import significant
from pages.ui.pickers import choose_layer, chosen_number, shown_word
from pages.ui.url import slid
from transformer_core.analysis.translation.greedy_steps import Written

LIKELIEST, LEAST_LIKELY = 0.5, 0.05


def _unsure(written: Written) -> int:
    """Return the step where the model was least sure, which is shown at first."""
    return int(written.probabilities.argmin())


def _choose_step(written: Written) -> None:
    """Show the slider of steps."""
    if len(written.words) > 1:
        slide_to_default(
            t("translation.step"), 0, len(written.words) - 1, name="translation_step", default=_unsure(written)
        )


def _chosen_step(written: Written) -> int:
    """Return the chosen step, from 0, without the slider."""
    last = len(written.words) - 1
    return int(slid(0, last, name="translation_step", default=_unsure(written))) if last else 0


def live_steps(view: View) -> Live:
    """Return both sentences, the likeliest words of the chosen step, and where the decoder looked."""
    answer = translated_so_far(view)
    written = answer.value
    step = _chosen_step(written)
    over, layer, head = chosen_weights(view)
    lines = lines_chart(
        weights_over(written.cross_weights, over, layer, head),
        written.source,
        written.words,
        strings("translation_lines"),
        step=step,
    )
    bars = likeliest_bars(written.others[step], written.likeliest[step], strings("translation_bars"))
    rows_layer = chosen_number("layer", view.bundle.config.n_layers)
    rows = step_rows(
        written.self_weights[rows_layer, :, step, : step + 1],
        written.cross_weights[rows_layer, :, step],
        written.read[: step + 1],
        written.source,
        strings("translation_rows"),
        strings("matrix"),
        version=f"rows {rows_layer}.{step}|{view.encoding.text}",
    )
    drawings = (
        Drawing("translation_bars", bars, answer, "translation_likeliest", t("translation.bars_label")),
        Drawing("translation_lines", lines, answer, "translation_lines", t("translation.lines_label")),
    )
    return Live(
        (Picture("translation_rows", rows, answer),),
        drawings=drawings,
        lines={"translation": sentences(written, step)},
        more=not written.whole,
    )


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
    written = translated(view).value
    sentences_place = st.container()
    _choose_step(written)
    step = _chosen_step(written)
    lines_place, bars_place = st.columns([6, 5], gap="large")
    with lines_place:
        over, layer, head = choose_weights(view)
    rows_place = st.container()
    with rows_place:
        tell(section("translation", "rows"))
        if over == "all":
            choose_layer(t("translation.rows_layer"), view)
    live = live_steps(view)
    (rows,), (bars, lines) = live.pictures, live.drawings
    assert isinstance(rows, Picture)
    with sentences_place:
        show_lines("translation", live.lines["translation"], style=STYLE)
        if not written.ended:
            st.caption(f":material/content_cut: {t('translation.cut', count=len(written.words))}")
    word, chance = plain(shown_word(written.words[step])), f"{written.probabilities[step]:.2%}"
    with bars_place:
        st.markdown(f"**{t('translation.came', step=step, word=word, chance=chance)}**")
        show_drawing(bars)
        st.caption(t("translation.others_note", count=f"{view.bundle.config.target_vocab_size or 0:,}"))
    with lines_place:
        st.markdown(f"**{t('translation.lines', word=word, whose=over_word(over, layer, head))}**")
        show_drawing(lines)
    with rows_place:
        show_picture(rows)
        export_picture(rows)
    slider = {"translation_step": str(step) if step != _unsure(written) else ""}
    follow_finger("translation", "steps", view, choices=weights_choices(view), sliders=slider)
    _whole_experiment(view, written)
