"""The page's part on writing on: tokens appear one by one, each with its distribution, and any may be another.

An experiment follows: does greedy writing end in a loop?
"""

import re
import time
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.figures.likeliest import redrawn_bars
from pages.figures.token_strip import text_strip
from pages.gpt.draw import RULES, SEED, next_draw, rules_in
from pages.gpt.text import strip_words
from pages.kit.asking import Answer, ask, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Kept, Slider, Values, show_in_columns
from pages.kit.experiment import ask_first, experiment, hidden, options_of
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.url import chosen, keep
from pages.kit.waiting import awaited
from pages.language import plain, section, t
from pages.room import Part, values_of
from transformer_core.analysis.gpt.continuation import (
    MOST_STEPS,
    ContinuationStep,
    WrittenOn,
    greedy_loop,
    written_on,
)

FIRST_STEPS = 24
TARGET = "gpt_target"
MOST_CHOICES = 32
PATTERN = re.compile(r"[0-9]{1,3}\.[0-9]{1,6}(_[0-9]{1,3}\.[0-9]{1,6})*")
MORE = 24
PACE = 0.04  # least seconds between two tokens, so that one sees each appear
CIRCLE_STEPS = 100
ROOM_OF_LINES = 160

Choices = tuple[tuple[int, int], ...]


def _first_steps(view: View) -> int:
    """Return how many tokens are written at first: a poem to its end, of other texts a line or two."""
    return view.bundle.config.max_len if view.bundle.measured.verse else FIRST_STEPS


@dataclass(frozen=True)
class PutTokens(Kept[Choices]):
    """The tokens that a person put in place of the model's, by their steps; other words in a link are refused."""

    def default_of(self, view: Any = None) -> Choices:
        return ()

    def read(self, view: Any = None) -> Choices:
        vocab = min(view.bundle.config.vocab_size, view.bundle.tokenizer.vocab_size)

        def read(asked: str) -> Choices | None:
            if not PATTERN.fullmatch(asked):
                return None
            pairs = {int(step): int(id_) for step, _, id_ in (pair.partition(".") for pair in asked.split("_"))}
            fits = len(pairs) <= MOST_CHOICES and all(step < MOST_STEPS and id_ < vocab for step, id_ in pairs.items())
            return tuple(sorted(pairs.items())) if fits else None

        return chosen(self.name, (), read, t("gpt.choices_form", most=MOST_CHOICES))


HOW = Choice("gpt_how", ("sample", "greedy"), label="gpt.how", words="gpt.how_{}")
STEPS = Slider("gpt_steps", 0, MOST_STEPS, _first_steps, label="")  # without a widget: buttons move it
CHOICES = PutTokens("gpt_choices")
WRITING = (HOW, SEED, *RULES, CHOICES, STEPS)


def _rules(values: Values) -> dict[str, Any]:
    """Return how tokens are written."""
    rules, seed = {"temperature": 1.0, "top_k": None, "top_p": None}, 0
    if values[HOW] == "sample":
        rules, seed = rules_in(values), values[SEED]
    return {"how": values[HOW], **rules, "seed": seed, "choices": values[CHOICES]}


def _written(view: View, values: Values) -> Answer[WrittenOn]:
    return ask_once(written_on, prompt=view.prompt, **_rules(values), steps=values[STEPS])


def _last(view: View) -> int:
    """Return the last step that is written."""
    return max(0, len(_written(view, values_of(WRITING, view)).value.steps) - 1)


STEP = Slider("gpt_step", 0, _last, _last, label="gpt.step")


def _ask_for(steps: int) -> None:
    """Have tokens written one by one, up to this step; only in a callback."""
    st.session_state[TARGET] = min(steps, MOST_STEPS)
    STEP.forget()


def _start_over(view: View) -> None:
    """Drop all that was written; only in a callback."""
    STEP.forget()
    CHOICES.forget()
    STEPS.take(0, view)


def _show_rules() -> None:
    how_place, seed_place, again_place = st.columns([3, 3, 2], gap="medium", vertical_alignment="bottom")
    with how_place:
        how = HOW.show()
    if how == "sample":
        with seed_place:
            SEED.show()
        again_place.button(t("gpt.other_seed"), icon=":material/casino:", key="gpt_other_seed", on_click=next_draw)
        show_in_columns(None, *RULES, gap="medium")


def _buttons(view: View) -> None:
    places, steps = st.columns(4), STEPS.read(view)
    full = steps >= MOST_STEPS
    more = min(MORE, MOST_STEPS - steps)
    buttons = (
        ("more", t("gpt.write_more", count=more), ":material/play_arrow:", _ask_for, (steps + more,), full),
        ("one", t("gpt.write_one"), ":material/skip_next:", _ask_for, (steps + 1,), full),
        ("stop", t("gpt.stop"), ":material/stop:", None, (), TARGET not in st.session_state),
        ("over", t("gpt.start_over"), ":material/restart_alt:", _start_over, (view,), steps == 0),
    )
    for place, (name, label, icon, call, arguments, disabled) in zip(places, buttons, strict=True):
        kind = "primary" if name == "more" else "secondary"
        options = {"icon": icon, "key": f"gpt_{name}", "disabled": disabled, "type": kind, "width": "stretch"}
        place.button(label, on_click=call, args=arguments, **options)


def _write_live(view: View, page: Any) -> None:
    """Write token by token up to the step asked for; another click interrupts it."""
    target, steps = st.session_state.pop(TARGET, 0), STEPS.read(view)
    rules = _rules(values_of(WRITING, view))
    while steps < target:
        started = time.monotonic()
        found = ask(written_on, prompt=view.prompt, **rules, steps=steps + 1).value
        if len(found.steps) <= steps:
            break
        steps += 1
        keep(STEPS.name, str(steps), str(STEPS.default_of(view)))  # as take, but the link changes once
        page.code(f"{view.encoding.text}{found.written}▏", language=None, wrap_lines=True)
        time.sleep(max(0.0, PACE - (time.monotonic() - started)))


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


def _step(answer: Answer[WrittenOn], step: ContinuationStep) -> Drawing:
    inside = step.top_ids.index(step.token_id) if step.token_id in step.top_ids else None
    words = {name: t(f"gpt.bar_{name}") for name in ("before", "after", "cut")}
    words |= {"probability": t("gpt.probability"), "rest": t("gpt.all_others")}
    kept, rest = [chance > 0 for chance in step.top_chances], (step.rest, step.rest_chance)
    chart = redrawn_bars(step.top_labels, step.top_probabilities, step.top_chances, kept, rest, words, chosen=inside)
    return Drawing("gpt_step_bars", chart, answer, "gpt_step", t("gpt.redrawn_label"))


def _picture(view: View, values: Values) -> Live:
    """Return what is written as a strip, and one step's distribution.

    Raises:
        ValueError: nothing is written.
    """
    answer, step = _written(view, values), values[STEP]
    steps = answer.value.steps
    if not steps:
        raise ValueError(f"steps={len(steps)} must be at least 1")
    return Live(drawings=(_strip(answer, step), _step(answer, steps[step])))


def _numbers(step: ContinuationStep) -> None:
    entropy, rank = st.columns(2)
    entropy.metric(t("gpt.entropy"), t("gpt.in_bits", bits=f"{step.entropy:.2f}"))
    rank.metric(t("gpt.rank"), f"{step.rank:,}")
    st.markdown(t("gpt.step_person" if step.by_person else "gpt.step_model", chance=f"{step.probability:.2%}"))
    show_prose(section("gpt", "put"), small=True)


def _put(view: View, step: ContinuationStep, number: int) -> None:
    """Offer the other likely tokens of this step; a click puts one there, and drops those that were put after it."""
    named = dict(zip(step.top_ids, zip(step.top_labels, step.top_probabilities, strict=True), strict=True))
    key = f"gpt_put {number} {step.token_id}"

    def on_choice() -> None:
        token_id = st.session_state.get(key)
        if token_id is not None:
            before = [pair for pair in CHOICES.read(view) if pair[0] < number][-(MOST_CHOICES - 1) :]
            CHOICES.set("_".join(f"{at}.{id_}" for at, id_ in [*before, (number, token_id)]))
            STEP.take(number, view)

    st.pills(
        t("gpt.put"),
        [id_ for id_ in named if id_ != step.token_id],
        format_func=lambda id_: f"{plain(named[id_][0])} {named[id_][1]:.1%}",
        key=key,
        on_change=on_choice,
        wrap=True,
    )


@experiment("gpt_circle_open", "gpt.try_circle")
def _circle_box(view: View) -> None:
    """Ask whether greedy writing ends in a loop, then write and show it."""
    options = options_of("gpt.circle_{}", ("no", "long", "short"))
    question = section("gpt", "try_circle").format(steps=CIRCLE_STEPS)
    cover = ask_first(question, options, name="gpt_circle", about=view.name)
    with cover.picture():
        asked = {"prompt": view.prompt, "steps": CIRCLE_STEPS}
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
    cover.judge(outcome, measured)


def _show(view: View) -> None:
    """Show the controls, what is written, one step's distribution, and an experiment."""
    _show_rules()
    _buttons(view)
    page = st.empty() if TARGET in st.session_state else st.container()  # emptied only where tokens come one by one
    _write_live(view, page)
    with st.spinner(t("gpt.writing")):
        found = _written(view, values_of(WRITING, view)).value
    page.code(view.encoding.text + found.written, language=None, wrap_lines=True)
    strip_place = st.container()
    if found.ended:
        st.caption(f":material/stop_circle: {t('gpt.ended')}")
    if found.steps:
        step = STEP.show(view)
        strip, bars = WRITE.live(view).drawings
        with strip_place:
            show_drawing(strip, on_place=lambda where: STEP.take(where, view))
        _put(view, found.steps[step], step)
        bars_place, numbers = st.columns([3, 2], gap="large")
        with bars_place:
            st.subheader(t("gpt.step_heading", step=step, token=plain(found.steps[step].label)), anchor=False)
            show_drawing(bars)
        with numbers:
            _numbers(found.steps[step])
        WRITE.follow(view)
    _circle_box(view)


WRITE = Part("gpt", "write", _show, _picture, (*WRITING, STEP))
