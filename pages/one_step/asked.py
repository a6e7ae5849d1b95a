"""What a step is asked for: what the model should have said, the rule, the rate, the steps taken, one weight."""

import re
from functools import partial
from typing import Any

import streamlit as st

from pages.kit.asking import ask_once
from pages.kit.controls import Choice, Control, Kept, Text, Values
from pages.kit.header import View
from pages.kit.refusals import in_own_words
from pages.kit.verdict import class_word
from pages.lab.edits import narrow_name
from pages.lab.outcome import can_answer
from pages.language import plain, t
from transformer_core.analysis.lab.weights import matrices_of
from transformer_core.analysis.learning.gradients import OneGradient, learning_step
from transformer_core.analysis.learning.rules import RULES
from transformer_core.analysis.learning.steps import (
    FASTEST,
    MOST_STEPS,
    RATES,
    SLOWEST,
    lesson,
    rate_of,
    second_likeliest,
)

TAKEN_STEPS = re.compile(rf"-?\d{{1,2}}(?:\.-?\d{{1,2}}){{0,{MOST_STEPS - 1}}}")
MOST_TARGET = 200  # characters


def _classes(view: View) -> dict[str, str]:
    if view.bundle.reader.asks != "class":
        return {"0": "0"}
    return {str(place): class_word(label) for place, label in enumerate(view.bundle.labels)}


def _other_class(view: View) -> int:
    return ask_once(second_likeliest, prompt=view.prompt).value if view.bundle.reader.asks == "class" else 0


def _readable(view: View, text: str) -> str | None:
    """Return a target that the model can be asked for, None for its default."""
    if text.strip() and view.bundle.reader.asks != "class":
        try:
            lesson(prompt=view.prompt, answer=text)
        except ValueError as error:
            raise ValueError(in_own_words(str(error))) from error
    return text if text.strip() else None


def _steps(_: View, text: str) -> tuple[int, ...]:
    """Return the rates of the steps that a link names; none where one of them is no rate."""
    taken = tuple(map(int, text.split("."))) if TAKEN_STEPS.fullmatch(text) else ()
    return taken if all(SLOWEST <= rate <= FASTEST for rate in taken) else ()


def _place(_: View, text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d{1,6})\.(\d{1,6})", text, re.ASCII)
    return (int(found[1]), int(found[2])) if found else None


def written_rate(exponent: int) -> str:
    """Return a rate in three digits."""
    return f"{rate_of(exponent):.3g}"


CLASS = Choice[int]("one_step_class", _classes, default=_other_class, label="one_step.target", kind=int, form="list")
TARGET = Text[str | None](
    "one_step_target",
    "",
    parse=_readable,
    label=lambda view: t(f"one_step.target_{view.bundle.reader.asks}"),
    most=MOST_TARGET,
)
RULE = Choice("one_step_rule", RULES, label="one_step.rule", words="one_step.rule_{}")
RATE = Choice(
    "one_step_rate",
    {str(rate): written_rate(rate) for rate in RATES},
    default=-6,
    label="one_step.rate",
    kind=int,
    form="steps",
)
TAKEN = Kept[tuple[int, ...]]("one_step_taken", parse=_steps)
CELL = Kept[tuple[int, int] | None]("one_step_cell", parse=_place)


def short(view: View, parameter: str) -> str:
    """Return a matrix's name in few letters."""
    return narrow_name(view.bundle, parameter)


def shortest(view: View, parameter: str) -> str:
    """Return it in the letters that fit above a small picture, as in ``0 query``: without the name of an only stack."""
    name = re.sub(r"\blayer(\d+)\.", r"\1 ", short(view, parameter))
    return name if view.bundle.kind == "translation" else re.sub(r"^(en|de)coder\.", "", name)


def _names(view: View) -> dict[str, str]:
    return {name: short(view, name) for name in matrices_of(view.bundle.model)}


def _steepest(view: View) -> str:
    """Return the matrix with the largest gradient."""
    found = ask_once(learning_step, **asked(view)).value
    return max(found.matrices, key=lambda one: one.norm).name


MATRIX = Choice("one_step_matrix", _names, default=_steepest, label="one_step.matrix", form="list")


def asked(view: View, values: Values | None = None) -> dict[str, Any]:
    """Return what every question about a step takes.

    Args:
        values: what the controls of a part hold, by default what they hold now.
    """

    def held(control: Control[Any]) -> Any:
        return control.read(view) if values is None else values[control]

    answer = held(CLASS) if view.bundle.reader.asks == "class" else held(TARGET)
    return {"prompt": view.prompt, "answer": answer, "rule": held(RULE), "taken": held(TAKEN)}


def chosen_weight(found: OneGradient, cell: tuple[int, int] | None) -> tuple[int, int]:
    """Return row and column of the weight that is followed: by default that of the largest gradient."""
    return cell if cell is not None and cell[0] < found.rows and cell[1] < found.cols else found.largest


def can_step(view: View) -> bool:
    """Tell whether a step can be taken; where not, say why."""
    if not can_answer(view):
        return False
    try:
        lesson(prompt=view.prompt)
    except ValueError as error:
        st.info(plain(in_own_words(str(error))), icon=":material/info:")
        return False
    return True


def show_target(view: View) -> None:
    """Show what says what the model should have said."""
    (CLASS if view.bundle.reader.asks == "class" else TARGET).show(view)


def show_steps(view: View) -> None:
    """Show the buttons that take a step and undo the last one."""
    taken, rate = TAKEN.read(view), RATE.read(view)

    def leave(steps: tuple[int, ...]) -> None:
        TAKEN.set(".".join(map(str, steps)))

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            t("one_step.take", rate=written_rate(rate)),
            icon=":material/step_over:",
            type="primary",
            key="one_step_take",
            disabled=len(taken) >= MOST_STEPS,
            on_click=partial(leave, (*taken, rate)),
        )
        st.button(
            t("one_step.undo"),
            icon=":material/undo:",
            key="one_step_undo",
            disabled=not taken,
            on_click=partial(leave, taken[:-1]),
        )
        st.button(
            t("one_step.start"),
            icon=":material/first_page:",
            key="one_step_start",
            disabled=not taken,
            on_click=partial(leave, ()),
        )
