"""Gradients over distance: how much the last output depends on a far input, in untrained layers and the encoder."""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from pages.before.figures import word_bars
from pages.before.ranges import try_ranges
from pages.before.recurrent import STATES, has_gates, show_direction, worded, worded_section
from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider
from pages.kit.experiment import ask_first, experiment
from pages.kit.header import View
from pages.kit.number_format import markdown_table, significant
from pages.language import joined, t
from pages.room import Part
from transformer_core.analysis.before.reach import GradientReach, gradient_reach, sentence_reach

FLOOR = 1e-12  # smaller gradients are not drawn: float32 is not precise enough for them
COLOURS = (HUES["residual"], HUES["query"], HUES["value"], HUES["weights"])
FEW = 4
MUCH_LOST = 0.5
LENGTH = Choice("before_length", (16, 32, 64, 128), label="before.length", default=64, kind=int, form="steps")
WIDTH = Choice("before_width", (16, 32), label="before.width", default=32, kind=int)
GAIN = Slider("before_gain", 0.5, 1.5, 1.0, step=0.1, kind=float, label="before.gain")
BIAS = Slider("before_keep", 0.0, 4.0, 2.0, step=0.5, kind=float, label="before.keep_bias")  # at 2, most stays
SEED = Slider("before_seed", 0, 20, 0, label="before.seed")


def _table(found: GradientReach) -> str:
    places = sorted({1, len(found.distances) // 4, len(found.distances) // 2, len(found.distances) - 1})
    head = (t("before.layer_kind"), *(t("before.at", distance=place) for place in places))
    rows = [
        (t(f"before.{name}"), *(significant(float(row[place])) for place in places))
        for name, row in zip(found.systems, found.relative, strict=True)
    ]
    return markdown_table(head, rows, right=len(places))


def _against_half_open(found: GradientReach, half_open: GradientReach) -> str:
    """Return a sentence on the gradient left at the middle distance, with the chosen bias and with bias 0."""
    middle = len(found.distances) // 2
    now, half = (dict(zip(one.systems, one.relative[:, middle].tolist(), strict=True)) for one in (found, half_open))
    left = {f"{name}_now": significant(now[name]) for name in ("gru", "lstm", "plain")}
    left |= {f"{name}_half": significant(half[name]) for name in ("gru", "lstm", "plain")}
    measured = t("before.half_open", distance=middle, **left)
    return joined(measured, t("before.half_open_loses")) if much_lost(now, half) else measured


def much_lost(now: Mapping[str, float], half: Mapping[str, float]) -> bool:
    """Tell whether half-open gates leave both gated networks at most half of the gradient; each by its name."""
    return all(half[name] <= MUCH_LOST * now[name] for name in ("gru", "lstm"))


@experiment("before_reach_open", lambda view: worded(view, "try_reach"))
def _trained_experiment(view: View) -> None:
    direction = show_direction(view)
    options = {name: worded(view, f"half_{name}") for name in ("one", "few", "many", "never")}
    question = worded_section(view, "try_reach", direction=t(f"before.direction_{direction}"))
    cover = ask_first(question, options, name="before_half", about=f"{direction} {view.name}")
    answer = ask_once(sentence_reach, prompt=view.prompt, direction=direction)
    found = answer.value
    outcome = "never" if found.half < 0 else "one" if found.half == 1 else "few" if found.half <= FEW else "many"
    far = len(found.norms) - 1 - found.last
    half = worded(view, "half_none") if found.half < 0 else worded(view, "half_measured", half=found.half)
    left = f"{found.norms[far] / found.norms[found.last]:.2%}"
    measured = worded(view, "left_measured", far=abs(far - found.last), left=left)
    cover.judge(outcome, f"{half} {measured}")
    with cover.picture():
        said = {"word": worded(view, "word"), "up": t("before.norm_axis")}
        chart = word_bars(found.tokens, {t(f"before.direction_{direction}"): found.norms}, said, share=False)
        show_chart(chart, answer, key="before_sentence", label=worded(view, "try_reach"))


def _show(view: View) -> None:
    """Show the four untrained layers as curves, and the experiment with the trained encoder."""
    controls, picture = st.columns([2, 5], gap="large")
    with controls:
        length, width, gain, bias, seed = (control.show() for control in (LENGTH, WIDTH, GAIN, BIAS, SEED))
    with picture:
        with st.spinner(t("before.measuring")):
            asked = {"length": length, "d_model": width, "seed": seed, "gain": gain}
            answer = ask_once(gradient_reach, **asked, keep_bias=bias)
            half_open = ask_once(gradient_reach, **asked, keep_bias=0.0).value
        found = answer.value
        st.markdown(f"**{t('before.reach_title')}**")
        series = {
            t(f"before.{name}"): np.where(row >= FLOOR, row, np.nan)
            for name, row in zip(found.systems, found.relative, strict=True)
        }
        chart = curves(
            found.distances,
            series,
            across=Side(t("before.distance")),
            up=Side(t("before.left_axis"), log=True),
            hues=COLOURS,
            points=False,
            height=360,
        )
        show_chart(chart, answer, key="before_reach", label=t("before.reach_title"))
        st.caption(t("before.reach_note", seed=seed, floor=significant(FLOOR)))
    st.markdown(_table(found))
    if bias:
        st.markdown(_against_half_open(found, half_open))
    _trained_experiment(view)
    if has_gates(view):
        try_ranges(view)


REACH = Part("before", "reach", _show, sites=("encoder.*.candidate", *STATES), group="attention")
