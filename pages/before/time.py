"""Times by length: one more word, and a whole sequence at once; measured once, and again on request."""

import time

import numpy as np
import streamlit as st

from pages.before.layer_types import say_timed, try_layer_types
from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.number_format import milliseconds
from pages.kit.waiting import awaited
from pages.language import section, t
from pages.room import Part
from transformer_core.analysis.before.step_times import WIDTHS, StepTimes, step_times

COLOURS = (HUES["query"], HUES["value"], HUES["weights"])
MEASUREMENT = "before_measurement"
WIDTH = Choice("before_time_width", WIDTHS, label="before.width", default=128, kind=int)
SEED = 0
ROOM = 1.5  # the axis extends beyond its curves by this factor, so that it has a round number on it
ALIKE = 0.1  # exponents that differ by less are called alike


def _chart(answer: Answer[StepTimes], what: str, rows: np.ndarray, up: str, format: str | None = None) -> None:
    found, title = answer.value, t(f"before.{what}_title")
    say(f"**{title}**")
    series = {t(f"before.{name}"): row for name, row in zip(found.systems, rows, strict=True)}
    across = Side(t("before.positions"), log=True)
    ends = (float(rows.min()) / ROOM, float(rows.max()) * ROOM)
    side = Side(t(up), log=True, domain=ends, format=format)
    chart = curves(found.lengths, series, across=across, up=side, hues=COLOURS)
    show_chart(chart, answer, key=f"before_{what}", label=title)


@experiment("before_time_open", "before.try_time")
def _reading_experiment(answer: Answer[StepTimes], width: int) -> None:
    options = options_of("before.grows_{}", ("recurrent", "alike", "attention"))
    found = answer.value
    ends = {"low": f"{found.lengths[-4]:,}", "longest": f"{found.lengths[-1]:,}"}
    cover = ask_first(section("before", "try_time").format(**ends), options, name="before_time", about=str(width))
    gru, attention = found.systems.index("gru"), found.systems.index("attention")
    steeper = found.reading_slopes[attention] - found.reading_slopes[gru]
    outcome = "alike" if abs(steeper) < ALIKE else "attention" if steeper > 0 else "recurrent"
    sentence = t(
        "before.reading_measured",
        **ends,
        gru=f"{found.reading_slopes[gru]:.2f}",
        attention=f"{found.reading_slopes[attention]:.2f}",
        gru_time=milliseconds(found.reading[gru, -1]),
        attention_time=milliseconds(found.reading[attention, -1]),
        times=f"{found.reading[gru, -1] / found.reading[attention, -1]:.1f}",
    )
    cover.judge(outcome, sentence)
    with cover.picture():
        _chart(answer, "reading", 1_000 * found.reading, "before.milliseconds")
        say(section("before", "time_after"), small=True)


def _show(_: View) -> None:
    """Measure; show the time of one more position, the memory that it needs, and the experiment."""
    st.session_state.setdefault(MEASUREMENT, 0)

    def again() -> None:
        st.session_state[MEASUREMENT] = time.time_ns()  # unused by other sessions, so measured again

    width_place, again_place = st.columns([3, 1], vertical_alignment="bottom")
    with width_place:
        width = WIDTH.show()
    with again_place:
        st.button(t("before.again"), icon=":material/replay:", key="before_again", on_click=again)
    asked = {"d_model": width, "seed": SEED, "measurement": st.session_state[MEASUREMENT]}
    answer = awaited(step_times, t("before.measuring"), key="before_times", height=620, **asked)
    if answer is None:
        return
    found = answer.value
    step_place, kept_place = st.columns(2, gap="large")
    with step_place:
        _chart(answer, "step", 1_000 * found.step, "before.milliseconds")
    with kept_place:
        _chart(answer, "memory", found.kept_numbers, "before.numbers", format=",")
    shortest, longest = found.lengths[0], found.lengths[-1]
    for name, row, slope in zip(found.systems, found.step, found.step_slopes, strict=True):
        sentence = t(
            "before.step_measured",
            name=t(f"before.{name}"),
            shortest=f"{shortest:,}",
            longest=f"{longest:,}",
            first=milliseconds(row[0]),
            last=milliseconds(row[-1]),
            slope=f"{slope:.2f}",
        )
        st.markdown(f"- {sentence}")
    say_timed(found.measured, found.spread)
    _reading_experiment(answer, width)
    try_layer_types(width, asked["measurement"])


TIME = Part("before", "time", _show, group="attention")
