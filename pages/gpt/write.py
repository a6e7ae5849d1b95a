"""The page's part on writing on: tokens appear one by one, each with its distribution, and any may be another."""

import time
from typing import Any

import streamlit as st

from pages.figures.likeliest import redrawn_bars
from pages.figures.token_strip import text_strip
from pages.gpt.cache import cache_box, circle_box
from pages.gpt.draw import choose_seed, next_seed
from pages.gpt.shared import Drawing, choose_drawing, strip_words
from pages.gpt.state import (
    STEP,
    TARGET,
    Choices,
    ask_for,
    choices_asked,
    keep_steps,
    look_at,
    put,
    start_over,
    steps_asked,
)
from pages.ui.asking import Answer, ask
from pages.ui.charts import clickable, show_chart
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, t
from pages.ui.url import choose, slide
from transformer_core.analysis.gpt.continuation import MOST_STEPS, ContinuationStep, WrittenOn, written_on

MORE = 24
PACE = 0.04  # seconds a token stays the last one at least, or nobody would see it appear


def write_part(view: View) -> None:
    """Show the controls, what is written, one step's distribution, and two experiments."""
    asked = _rules(view)
    steps, choices = steps_asked(), asked["choices"]
    _buttons(steps)
    page = st.empty() if TARGET in st.session_state else st.container()  # emptied only where tokens come one by one
    steps = _write_live(view, asked, steps, page)
    with st.spinner(t("gpt.writing")):
        answer = ask(written_on, **view.asked, **asked, steps=steps)
    found = answer.value
    page.code(view.encoding.text + found.written, language=None, wrap_lines=True)
    if found.ended:
        st.caption(f":material/stop_circle: {t('gpt.ended')}")
    if found.steps:
        strip = st.container()
        step = _scrub(len(found.steps))
        with strip:
            _strip(answer, step)
        _put(found.steps[step], step, choices)
        bars, numbers = st.columns([3, 2], gap="large")
        with bars:
            _step(answer, found.steps[step], step)
        with numbers:
            _numbers(found.steps[step])
    circle_box(view)
    cache_box(view)


def _rules(view: View) -> dict[str, Any]:
    how_place, seed_place, again_place = st.columns([3, 3, 2], gap="medium", vertical_alignment="bottom")
    with how_place:
        ways = {name: t(f"gpt.how_{name}") for name in ("sample", "greedy")}
        how = choose(t("gpt.how"), ways, name="gpt_how", default="sample")
    drawing, seed = Drawing(1.0, None, None), 0
    if how == "sample":
        with seed_place:
            seed = choose_seed()
        again_place.button(t("gpt.other_seed"), icon=":material/casino:", key="gpt_other_seed", on_click=next_seed)
        drawing = choose_drawing()
    choices = choices_asked(min(view.bundle.config.vocab_size, view.bundle.tokenizer.vocab_size))
    return {"how": how, **drawing.asked, "seed": seed, "choices": choices}


def _buttons(steps: int) -> None:
    places = st.columns(4)
    full = steps >= MOST_STEPS
    more = min(MORE, MOST_STEPS - steps)
    buttons = (
        ("more", t("gpt.write_more", count=more), ":material/play_arrow:", ask_for, (steps + more,), full),
        ("one", t("gpt.write_one"), ":material/skip_next:", ask_for, (steps + 1,), full),
        ("stop", t("gpt.stop"), ":material/stop:", None, (), TARGET not in st.session_state),
        ("over", t("gpt.start_over"), ":material/restart_alt:", start_over, (), steps == 0),
    )
    for place, (name, label, icon, call, arguments, disabled) in zip(places, buttons, strict=True):
        kind = "primary" if name == "more" else "secondary"
        options = {"icon": icon, "key": f"gpt_{name}", "disabled": disabled, "type": kind, "width": "stretch"}
        place.button(label, on_click=call, args=arguments, **options)


def _write_live(view: View, asked: dict[str, Any], steps: int, page: Any) -> int:
    """Write up to what was asked for, token by token; another click ends it after the token that is there."""
    target = st.session_state.pop(TARGET, None)
    if target is None:
        return steps
    while steps < target:
        started = time.monotonic()
        found = ask(written_on, **view.asked, **asked, steps=steps + 1).value
        if len(found.steps) <= steps:
            break
        steps += 1
        keep_steps(steps)
        page.code(f"{view.encoding.text}{found.written}▏", language=None, wrap_lines=True)
        time.sleep(max(0.0, PACE - (time.monotonic() - started)))
    return steps


def _strip(answer: Answer[WrittenOn], step: int) -> None:
    found = answer.value.steps
    about = {
        t("gpt.bits"): [f"{bits:.2f}" for bits in answer.value.bits.tolist()],
        t("gpt.probability"): [f"{one.probability:.2%}" for one in found],
        t("gpt.rank"): [f"{one.rank:,}" for one in found],
        t("gpt.bar_after"): [f"{one.chance:.2%}" for one in found],
        t("gpt.by"): [t("gpt.by_person" if one.by_person else "gpt.by_model") for one in found],
    }
    strip = text_strip(
        [one.label for one in found],
        answer.value.bits.tolist(),
        about,
        strip_words(),
        chosen=step,
        marked=[one.by_person for one in found],
    )
    label = t("gpt.written_label")
    clickable(strip, answer, key="gpt_written", stem="gpt_written", label=label, on_place=look_at)


def _scrub(steps: int) -> int:
    if steps == 1:
        return 0
    return int(slide(t("gpt.step"), 0, steps - 1, name=STEP, default=steps - 1))


def _step(answer: Answer[WrittenOn], step: ContinuationStep, number: int) -> None:
    st.subheader(t("gpt.step_heading", step=number, token=plain(step.label)), anchor=False)
    inside = step.top_ids.index(step.token_id) if step.token_id in step.top_ids else None
    words = {name: t(f"gpt.bar_{name}") for name in ("before", "after", "cut")}
    words |= {"probability": t("gpt.probability"), "rest": t("gpt.all_others")}
    after = step.top_chances
    rest = (step.rest, step.rest_chance)
    kept = [chance > 0 for chance in after]
    chart = redrawn_bars(step.top_labels, step.top_probabilities, after, kept, rest, words, chosen=inside)
    show_chart(chart, answer, key="gpt_step_bars", stem=f"gpt_step{number}", label=t("gpt.redrawn_label"))


def _numbers(step: ContinuationStep) -> None:
    entropy, rank = st.columns(2)
    entropy.metric(t("gpt.entropy"), t("gpt.in_bits", bits=f"{step.entropy:.2f}"))
    rank.metric(t("gpt.rank"), f"{step.rank:,}")
    told = t("gpt.step_person" if step.by_person else "gpt.step_model", chance=f"{step.probability:.2%}")
    st.markdown(told)
    tell(section("gpt", "put"), small=True)


def _put(step: ContinuationStep, number: int, choices: Choices) -> None:
    """Let a person put another token at this step."""
    named = dict(zip(step.top_ids, zip(step.top_labels, step.top_probabilities, strict=True), strict=True))
    key = f"gpt_put {number} {step.token_id}"

    def chosen() -> None:
        token_id = st.session_state.get(key)
        if token_id is not None:
            put(choices, number, token_id)
            look_at(number)

    st.pills(
        t("gpt.put"),
        [id_ for id_ in named if id_ != step.token_id],
        format_func=lambda id_: f"{plain(named[id_][0])} {named[id_][1]:.1%}",
        key=key,
        on_change=chosen,
        wrap=True,
    )
