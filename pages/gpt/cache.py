"""Two experiments on writing: does the likeliest token lead in circles, and what does a cache save."""

import streamlit as st

from pages.gpt.figures import cache_curves
from pages.ui.asking import ask_once
from pages.ui.boxes import ask_first, hidden, lazy_box, say
from pages.ui.charts import show_chart
from pages.ui.header import View
from pages.ui.language import plain, section, t
from pages.ui.number_format import significant
from transformer_core.analysis.gpt.cache_times import CacheTimes, cache_times, lengths_for
from transformer_core.analysis.gpt.continuation import greedy_loop

CIRCLE_STEPS = 100
MEASUREMENT = "gpt_measurement"
SHORT, FAR = 2.0, 5.0


def circle_box(view: View) -> None:
    """Ask whether greedy writing ends in a circle, then write and look."""
    box = lazy_box(t("gpt.try_circle"), icon=":material/science:", key="gpt_circle_open")
    if box is None:
        return
    with box:
        options = {name: t(f"gpt.circle_{name}") for name in ("no", "long", "short")}
        question = section("gpt", "try_circle").format(steps=CIRCLE_STEPS)
        cover = ask_first(question, options, name="gpt_circle", about=f"{view.bundle.name} {view.encoding.text}")
        with st.spinner(t("gpt.writing")):
            found = ask_once(greedy_loop, **view.asked, steps=CIRCLE_STEPS).value
        outcome = "no" if not found.period else "short" if found.period <= 10 else "long"
        told = t("gpt.circle_none", steps=len(found.written.steps))
        if found.period:
            again = plain("".join(found.again))
            told = t("gpt.circle_measured", since=found.since, period=found.period, again=again)
        cover.judge(outcome, told)
        with cover.picture():
            st.code(hidden(view.encoding.text + found.written.written), language=None, wrap_lines=True)


def cache_box(view: View) -> None:
    """Ask what a cache saves, then measure it on this machine."""
    box = lazy_box(t("gpt.try_cache"), icon=":material/science:", key="gpt_cache_open")
    if box is None:
        return
    with box:
        options = {name: t(f"gpt.cache_{name}") for name in ("little", "some", "far")}
        longest = lengths_for(view.bundle)[-1]
        question = section("gpt", "try_cache").format(length=longest)
        cover = ask_first(question, options, name="gpt_cache", about=view.bundle.name)
        st.session_state.setdefault(MEASUREMENT, 0)

        def again() -> None:
            st.session_state[MEASUREMENT] += 1

        with st.spinner(t("gpt.measuring")):
            answer = ask_once(cache_times, **view.asked, measurement=st.session_state[MEASUREMENT])
        found = answer.value
        outcome = "little" if found.faster < SHORT else "some" if found.faster < FAR else "far"
        cover.judge(outcome, _told(found))
        with cover.picture():
            words = {name: t(f"gpt.cache_{name}") for name in ("length", "milliseconds", "plain", "cached")}
            chart = cache_curves(found.lengths, found.plain, found.cached, words)
            show_chart(chart, answer, key="gpt_cache", stem="gpt_cache", label=t("gpt.cache_label"))
            st.button(t("gpt.measure_again"), icon=":material/replay:", key="gpt_measure_again", on_click=again)
            say(section("gpt", "cache_after"), small=True)


def _told(found: CacheTimes) -> str:
    return t(
        "gpt.cache_measured",
        length=int(found.lengths[-1]),
        plain=significant(1_000 * found.plain[-1], 3),
        cached=significant(1_000 * found.cached[-1], 3),
        faster=f"{found.faster:.1f}",
        size=_bytes(float(found.size[-1])),
        each=_bytes(found.bytes_a_token),
        apart=significant(found.apart),
    )


def _bytes(count: float) -> str:
    return f"{count / 2**20:.2f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
