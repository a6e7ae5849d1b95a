"""The page's part on writing on: tokens appear one by one, each with its distribution, and any may be another.

Two experiments follow: does greedy writing end in a loop, and how much time does a key/value cache save?
"""

import re
import time
from typing import Any

import streamlit as st

from pages.figures.likeliest import redrawn_bars
from pages.figures.token_strip import text_strip
from pages.gpt.draw import (
    RULES,
    SEED,
    SamplingRules,
    choose_rules,
    choose_seed,
    chosen_rules,
    chosen_seed_of_draws,
    next_draw,
)
from pages.gpt.figures import cache_curves
from pages.gpt.text import strip_words
from pages.ui.asking import Answer, ask, ask_once
from pages.ui.charts import Drawing, show_chart, show_drawing
from pages.ui.experiment import ask_first, hidden, lazy_box, say
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, t
from pages.ui.live import Live, follow_finger
from pages.ui.number_format import significant
from pages.ui.url import choose, chosen, chosen_option, forget, keep, slid, slide, whole_number
from pages.ui.waiting import awaited, say_when_busy
from transformer_core.analysis.gpt.cache_times import CacheTimes, cache_times, lengths_for
from transformer_core.analysis.gpt.continuation import (
    MOST_STEPS,
    ContinuationStep,
    WrittenOn,
    greedy_loop,
    written_on,
)

STEPS, STEP, CHOICES = "gpt_steps", "gpt_step", "gpt_choices"
USUAL_STEPS = 24
TARGET = "gpt_target"
WAYS = ("sample", "greedy")
MOST_CHOICES = 32
PATTERN = re.compile(r"[0-9]{1,3}\.[0-9]{1,6}(_[0-9]{1,3}\.[0-9]{1,6})*")
MORE = 24
PACE = 0.04  # least seconds between two tokens, so that one sees each appear
CIRCLE_STEPS = 100
ROOM_OF_LINES = 160
MEASUREMENT = "gpt_measurement"
SHORT, FAR = 2.0, 5.0

Choices = tuple[tuple[int, int], ...]


def _usual_steps(view: View) -> int:
    """Return how many tokens are written at first: a poem to its end, of other texts a line or two."""
    return view.bundle.config.max_len if view.bundle.measured.verse else USUAL_STEPS


def _steps_asked(usual: int) -> int:
    """Return how many tokens are to be written, as kept or as in the URL."""

    return chosen(STEPS, usual, lambda asked: whole_number(asked, MOST_STEPS), f"0 … {MOST_STEPS}")


def _keep_steps(steps: int, usual: int) -> None:
    """Keep how many tokens have been written."""
    keep(STEPS, str(steps), str(usual))


def _choices_asked(vocab: int) -> Choices:
    """Return the tokens that a person put in place of the model's, as kept or as in the URL."""

    def read(asked: str) -> Choices | None:
        if not PATTERN.fullmatch(asked):
            return None
        pairs = {int(step): int(id_) for step, _, id_ in (pair.partition(".") for pair in asked.split("_"))}
        fits = len(pairs) <= MOST_CHOICES and all(step < MOST_STEPS and id_ < vocab for step, id_ in pairs.items())
        return tuple(sorted(pairs.items())) if fits else None

    return chosen(CHOICES, (), read, t("gpt.choices_form", most=MOST_CHOICES))


def _put_token(choices: Choices, step: int, token_id: int) -> None:
    """Put a token at a step and drop those that were put after it; only in a callback."""
    kept = [pair for pair in choices if pair[0] < step][-(MOST_CHOICES - 1) :]
    keep(CHOICES, "_".join(f"{at}.{id_}" for at, id_ in [*kept, (step, token_id)]), "")


def _look_at(step: int) -> None:
    """Move the scrubber to a step; only in a callback."""
    forget(STEP)
    keep(STEP, str(step), "")


def _ask_for(steps: int) -> None:
    """Have tokens written one by one, up to this step; only in a callback."""
    st.session_state[TARGET] = min(steps, MOST_STEPS)
    forget(STEP)


def _start_over(usual: int) -> None:
    """Drop all that was written; only in a callback."""
    forget(STEP, CHOICES)
    _keep_steps(0, usual)


def _rules(view: View) -> dict[str, Any]:
    how_place, seed_place, again_place = st.columns([3, 3, 2], gap="medium", vertical_alignment="bottom")
    with how_place:
        ways = {name: t(f"gpt.how_{name}") for name in WAYS}
        how = choose(t("gpt.how"), ways, name="gpt_how", default="sample")
    if how == "sample":
        with seed_place:
            choose_seed()
        again_place.button(t("gpt.other_seed"), icon=":material/casino:", key="gpt_other_seed", on_click=next_draw)
        choose_rules()
    return _chosen_rules(view)


def _chosen_rules(view: View) -> dict[str, Any]:
    """Return how tokens are written, as the controls have it."""
    how = chosen_option("gpt_how", WAYS, default="sample")
    rules, seed = (chosen_rules(), chosen_seed_of_draws()) if how == "sample" else (SamplingRules(1.0, None, None), 0)
    choices = _choices_asked(min(view.bundle.config.vocab_size, view.bundle.tokenizer.vocab_size))
    return {"how": how, **rules.asked, "seed": seed, "choices": choices}


def _buttons(steps: int, usual: int) -> None:
    places = st.columns(4)
    full = steps >= MOST_STEPS
    more = min(MORE, MOST_STEPS - steps)
    buttons = (
        ("more", t("gpt.write_more", count=more), ":material/play_arrow:", _ask_for, (steps + more,), full),
        ("one", t("gpt.write_one"), ":material/skip_next:", _ask_for, (steps + 1,), full),
        ("stop", t("gpt.stop"), ":material/stop:", None, (), TARGET not in st.session_state),
        ("over", t("gpt.start_over"), ":material/restart_alt:", _start_over, (usual,), steps == 0),
    )
    for place, (name, label, icon, call, arguments, disabled) in zip(places, buttons, strict=True):
        kind = "primary" if name == "more" else "secondary"
        options = {"icon": icon, "key": f"gpt_{name}", "disabled": disabled, "type": kind, "width": "stretch"}
        place.button(label, on_click=call, args=arguments, **options)


def _write_live(view: View, asked: dict[str, Any], steps: int, page: Any) -> int:
    """Write token by token up to the step asked for; another click interrupts it. Return how many are written."""
    target = st.session_state.pop(TARGET, None)
    if target is None:
        return steps
    while steps < target:
        started = time.monotonic()
        found = ask(written_on, **view.asked, **asked, steps=steps + 1).value
        if len(found.steps) <= steps:
            break
        steps += 1
        _keep_steps(steps, _usual_steps(view))
        page.code(f"{view.encoding.text}{found.written}▏", language=None, wrap_lines=True)
        time.sleep(max(0.0, PACE - (time.monotonic() - started)))
    return steps


def _strip(answer: Answer[WrittenOn], step: int) -> Drawing:
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
    return Drawing("gpt_written", strip, answer, "gpt_written", t("gpt.written_label"))


def _scrub(steps: int) -> int:
    if steps > 1:
        slide(t("gpt.step"), 0, steps - 1, name=STEP, default=steps - 1)
    return _scrubbed(steps)


def _scrubbed(steps: int) -> int:
    """Return the step that the scrubber is at, without it."""
    return int(slid(0, steps - 1, name=STEP, default=steps - 1)) if steps > 1 else 0


def _step(answer: Answer[WrittenOn], step: ContinuationStep) -> Drawing:
    inside = step.top_ids.index(step.token_id) if step.token_id in step.top_ids else None
    words = {name: t(f"gpt.bar_{name}") for name in ("before", "after", "cut")}
    words |= {"probability": t("gpt.probability"), "rest": t("gpt.all_others")}
    kept, rest = [chance > 0 for chance in step.top_chances], (step.rest, step.rest_chance)
    chart = redrawn_bars(step.top_labels, step.top_probabilities, step.top_chances, kept, rest, words, chosen=inside)
    return Drawing("gpt_step_bars", chart, answer, "gpt_step", t("gpt.redrawn_label"))


def live_write(view: View) -> Live:
    """Return what is written as a strip, and one step's distribution.

    Raises:
        ValueError: nothing is written.
    """
    return _live(ask_once(written_on, **view.asked, **_chosen_rules(view), steps=_steps_asked(_usual_steps(view))))


def _live(answer: Answer[WrittenOn]) -> Live:
    steps = answer.value.steps
    if not steps:
        raise ValueError(f"steps={len(steps)} must be at least 1")
    step = _scrubbed(len(steps))
    return Live(drawings=(_strip(answer, step), _step(answer, steps[step])))


def _numbers(step: ContinuationStep) -> None:
    entropy, rank = st.columns(2)
    entropy.metric(t("gpt.entropy"), t("gpt.in_bits", bits=f"{step.entropy:.2f}"))
    rank.metric(t("gpt.rank"), f"{step.rank:,}")
    st.markdown(t("gpt.step_person" if step.by_person else "gpt.step_model", chance=f"{step.probability:.2%}"))
    tell(section("gpt", "put"), small=True)


def _put(step: ContinuationStep, number: int, choices: Choices) -> None:
    """Offer the other likely tokens of this step; a click puts one there."""
    named = dict(zip(step.top_ids, zip(step.top_labels, step.top_probabilities, strict=True), strict=True))
    key = f"gpt_put {number} {step.token_id}"

    def on_choice() -> None:
        token_id = st.session_state.get(key)
        if token_id is not None:
            _put_token(choices, number, token_id)
            _look_at(number)

    st.pills(
        t("gpt.put"),
        [id_ for id_ in named if id_ != step.token_id],
        format_func=lambda id_: f"{plain(named[id_][0])} {named[id_][1]:.1%}",
        key=key,
        on_change=on_choice,
        wrap=True,
    )


def _circle_box(view: View) -> None:
    """Ask whether greedy writing ends in a loop, then write and show it."""
    box = lazy_box(t("gpt.try_circle"), icon=":material/science:", key="gpt_circle_open")
    if box is None:
        return
    with box:
        options = {name: t(f"gpt.circle_{name}") for name in ("no", "long", "short")}
        question = section("gpt", "try_circle").format(steps=CIRCLE_STEPS)
        cover = ask_first(question, options, name="gpt_circle", about=f"{view.bundle.name} {view.encoding.text}")
        judgement = st.container()
        with cover.picture():
            asked = {**view.asked, "steps": CIRCLE_STEPS}
            answer = awaited(greedy_loop, t("gpt.writing"), key="gpt_circle", height=ROOM_OF_LINES, **asked)
            if answer is None:
                return
            found = answer.value
            st.code(hidden(view.encoding.text + found.written.written), language=None, wrap_lines=True)
        outcome = "no" if not found.period else "short" if found.period <= 10 else "long"
        measured = t("gpt.circle_none", steps=len(found.written.steps))
        if found.period:
            again = plain("".join(found.again))
            measured = t("gpt.circle_measured", since=found.since, period=found.period, again=again)
        with judgement:
            cover.judge(outcome, measured)


def _cache_box(view: View) -> None:
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

        judgement, asked = st.container(), {**view.asked, "measurement": st.session_state[MEASUREMENT]}
        with cover.picture():
            answer = awaited(cache_times, t("gpt.measuring"), key="gpt_cache", **asked)
            if answer is None:
                return
            found = answer.value
            words = {name: t(f"gpt.cache_{name}") for name in ("length", "milliseconds", "plain", "cached")}
            chart = cache_curves(found.lengths, found.plain, found.cached, words)
            show_chart(chart, answer, key="gpt_cache", stem="gpt_cache", label=t("gpt.cache_label"))
            st.button(t("gpt.measure_again"), icon=":material/replay:", key="gpt_measure_again", on_click=again)
            say(section("gpt", "cache_after"), small=True)
            say_when_busy(found.spread)
        outcome = "little" if found.faster < SHORT else "some" if found.faster < FAR else "far"
        with judgement:
            cover.judge(outcome, _measured(found))


def _measured(found: CacheTimes) -> str:
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


def write_part(view: View) -> None:
    """Show the controls, what is written, one step's distribution, and two experiments."""
    asked = _rules(view)
    usual = _usual_steps(view)
    steps, choices = _steps_asked(usual), asked["choices"]
    _buttons(steps, usual)
    page = st.empty() if TARGET in st.session_state else st.container()  # emptied only where tokens come one by one
    steps = _write_live(view, asked, steps, page)
    with st.spinner(t("gpt.writing")):
        answer = ask_once(written_on, **view.asked, **asked, steps=steps)
    found = answer.value
    page.code(view.encoding.text + found.written, language=None, wrap_lines=True)
    strip_place = st.container()
    if found.ended:
        st.caption(f":material/stop_circle: {t('gpt.ended')}")
    if found.steps:
        step = _scrub(len(found.steps))
        strip, bars = _live(answer).drawings
        with strip_place:
            show_drawing(strip, on_place=_look_at)
        _put(found.steps[step], step, choices)
        bars_place, numbers = st.columns([3, 2], gap="large")
        with bars_place:
            st.subheader(t("gpt.step_heading", step=step, token=plain(found.steps[step].label)), anchor=False)
            show_drawing(bars)
        with numbers:
            _numbers(found.steps[step])
        sliders: dict[str, float | str] = {STEP: "" if step == len(found.steps) - 1 else step}
        sliders |= {SEED: chosen_seed_of_draws(), STEPS: steps} | {ends["name"]: slid(**ends) for ends in RULES}
        follow_finger("gpt", "write", view, choices={"gpt_how": (WAYS, asked["how"])}, sliders=sliders)
    _circle_box(view)
    _cache_box(view)
