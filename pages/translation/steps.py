"""The translation step by step: the word written, its likeliest alternatives, and where the decoder looked."""

from math import exp

import streamlit as st

from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Slider, Values, layer_control
from pages.kit.experiment import ask_first, experiment, options_of
from pages.kit.glossary import show_prose
from pages.kit.header import View, shown_word
from pages.kit.live import Live, show_lines
from pages.kit.matrix import Picture, show_picture
from pages.kit.number_format import significant
from pages.language import plain, section, strings, t
from pages.room import Part
from pages.translation.figures.charts import likeliest_bars, lines_chart
from pages.translation.figures.matrices import step_rows
from pages.translation.translated import (
    HEAD,
    LAYER,
    OVER,
    STYLE,
    choose_weights,
    chosen_weights,
    over_word,
    sentences,
    translated,
    translated_so_far,
    weights_over,
)
from transformer_core.analysis.translation.greedy_steps import Written

LIKELIEST, LEAST_LIKELY = 0.5, 0.05


def _last(view: View) -> int:
    return len(translated_so_far(view).value.words) - 1


def _unsure(view: View) -> int:
    """Return the step where the model was least sure, which is shown at first."""
    return int(translated_so_far(view).value.probabilities.argmin())


STEP = Slider("translation_step", 0, _last, _unsure, label="translation.step")
ROWS_LAYER = layer_control("translation.rows_layer")  # the same layer, where no other control of the part chooses it


def _picture(view: View, values: Values) -> Live:
    """Return both sentences, the likeliest words of the chosen step, and where the decoder looked."""
    answer = translated_so_far(view)
    written = answer.value
    step, rows_layer = values[STEP], values[ROWS_LAYER]
    over, layer, head = chosen_weights(values)
    lines = lines_chart(
        weights_over(written.cross_weights, over, layer, head),
        written.source,
        written.words,
        strings("translation_lines"),
        step=step,
    )
    bars = likeliest_bars(written.others[step], written.likeliest[step], strings("translation_bars"))
    rows = step_rows(
        written.self_weights[rows_layer, :, step, : step + 1],
        written.cross_weights[rows_layer, :, step],
        written.read[: step + 1],
        written.source,
        strings("translation_rows"),
    )
    drawings = (
        Drawing("translation_bars", bars, answer, "translation_likeliest", t("translation.bars_label")),
        Drawing("translation_lines", lines, answer, "translation_lines", t("translation.lines_label")),
    )
    return Live(
        (Picture("translation_rows", rows, answer, version=f"rows {rows_layer}.{step}|{view.encoding.text}"),),
        drawings=drawings,
        lines={"translation": sentences(written, step)},
        more=not written.whole,
    )


@experiment("translation_whole_open")
def _whole_experiment(view: View, written: Written) -> None:
    """Ask how probable the whole translation is, then show the product of its probabilities."""
    count, whole = len(written.words), exp(written.log_prob)
    ends = {"high": f"{LIKELIEST:.0%}", "low": f"{LEAST_LIKELY:.0%}"}
    options = options_of("translation.whole_{}", ("over", "between", "under"), **ends)
    question = section("translation", "try_whole").format(count=count)
    cover = ask_first(question, options, name="translation_whole", about=view.name)
    outcome = "over" if whole > LIKELIEST else "under" if whole < LEAST_LIKELY else "between"
    measured = t(
        "translation.whole_measured",
        count=count,
        whole=f"{significant(100 * whole, 3)}%",
        mean=f"{exp(written.log_prob / count):.1%}",
        least=f"{written.probabilities.min():.1%}",
    )
    cover.judge(outcome, measured)


def _show(view: View) -> None:
    """Show both sentences, the slider of steps, and one step in detail."""
    written = translated(view).value
    sentences_place = st.container()
    step = STEP.show(view)
    lines_place, bars_place = st.columns([6, 5], gap="large")
    with lines_place:
        over, layer, head = choose_weights(view)
    rows_place = st.container()
    with rows_place:
        show_prose(section("translation", "rows"))
        if over == "all":
            ROWS_LAYER.show(view)
    live = STEPS.live(view)
    (rows,), (bars, lines) = live.matrices, live.drawings
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
        show_picture(rows, files=True)
    STEPS.follow(view)
    _whole_experiment(view, written)


STEPS = Part("translation", "steps", _show, _picture, (STEP, OVER, LAYER, HEAD))
