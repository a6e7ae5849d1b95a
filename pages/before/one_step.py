"""One step of the recurrent layer in numbers: every unit as a matrix, the chosen unit as equations."""

import numpy as np
import streamlit as st

from pages.before.figures import step_figure
from pages.before.recurrent import show_direction, worded, worded_section
from pages.kit.asking import ask_once
from pages.kit.controls import Kept, Slider
from pages.kit.glossary import show_prose
from pages.kit.header import View, shown_word
from pages.kit.matrix import show_matrix
from pages.kit.url import whole_number
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.before.gates import recurrent_model
from transformer_core.analysis.before.one_step import OneStep, one_step
from transformer_core.models.recurrent import RecurrentLm

UNIT = Kept[str]("before_unit")
PLACE = Slider(
    "before_step_at",
    0,
    lambda view: len(view.encoding) - 1,
    lambda view: min(2, len(view.encoding) - 1),
    label=lambda view: worded(view, "word"),
)
LETTERS = {"reset_gate": "r", "update_gate": "z", "input_gate": "i", "forget_gate": "f", "output_gate": "o"}


def _number(value: float) -> str:
    written = f"{value:.3f}"
    return f"({written})" if written.startswith("-") else written


def _under(value: float, name: str) -> str:
    return rf"\underbrace{{{_number(value)}}}_{{{name}}}"


def _part_line(found: OneStep, part: int, unit: int) -> str:
    """Return the equation of a gate or a candidate with a unit's numbers."""
    name = found.parts[part]
    candidate = name == "candidate"
    letter = LETTERS.get(name, {"gru": "n", "lstm": "g"}.get(found.unit, "h'"))
    at = "" if found.unit == "tanh" else f"_{letter}"
    function = r"\tanh" if candidate else r"\sigma"
    into, old = found.from_input[part, unit], found.from_state[part, unit]
    gate = found.values[0, unit] if candidate and found.unit == "gru" else None
    reset = "" if gate is None else rf"\underbrace{{{_number(gate)}}}_{{r}}\cdot"
    terms = rf"{_under(into, f'W{at}x+b{at}')}+{reset}{_under(old, f'U{at}h+c{at}')}"
    total = into + old * (1.0 if gate is None else gate)
    value = found.values[part, unit]
    return rf"{letter}&={function}\big({terms}\big)={function}({total:.3f})=\mathbf{{{value:.3f}}}"


def _state_lines(found: OneStep, unit: int) -> list[str]:
    """Return the equations of the new state with a unit's numbers."""
    values = {name: found.values[part, unit] for part, name in enumerate(found.parts)}
    new = rf"\mathbf{{{found.after[unit]:.3f}}}"
    if found.unit == "gru":
        kept, candidate, old = values["update_gate"], values["candidate"], found.before[unit]
        numbers = rf"(1-{kept:.3f})\cdot{_number(candidate)}+{kept:.3f}\cdot{_number(old)}"
        return [r"h'&=(1-z)\,n+z\,h", rf"&={numbers}", rf"&={new}"]
    if found.unit == "lstm":
        old, cell = found.cell_before[unit], found.cell_after[unit]
        sums = rf"{values['forget_gate']:.3f}\cdot{_number(old)}"
        sums += rf"+{values['input_gate']:.3f}\cdot{_number(values['candidate'])}"
        hidden = rf"{values['output_gate']:.3f}\cdot\tanh({cell:.3f})"
        return [r"c'&=f\,c+i\,g", rf"&={sums}=\mathbf{{{cell:.3f}}}", rf"h'&=o\tanh(c')={hidden}={new}"]
    return []


def equations(found: OneStep, unit: int) -> str:
    """Return all equations of a unit's step, with its numbers to three places, as LaTeX."""
    lines = [_part_line(found, part, unit) for part in range(len(found.parts))]
    return r"\begin{aligned}" + r"\\[2pt]".join([*lines, *_state_lines(found, unit)]) + r"\end{aligned}"


def _take(order: np.ndarray, cell: tuple[int, int] | None) -> None:
    if cell is not None and cell[1] < len(order):
        UNIT.set(str(order[cell[1]]))


def _show(view: View) -> None:
    """Show which word's step it is, all units of it, and one unit's equations."""
    word_place, direction_place = st.columns([5, 2], gap="large")
    with direction_place:
        direction = show_direction(view)
    with word_place:
        place = PLACE.show(view)
    answer = ask_once(one_step, prompt=view.prompt, place=place, direction=direction)
    found = answer.value
    word, before = plain(shown_word(found.tokens[place])), found.read_before
    if before < 0:
        st.markdown(t("before.step_first", word=word))
    else:
        st.markdown(t("before.step_reads", word=word, before=plain(shown_word(found.tokens[before]))))
    cells = {"cell_before": found.cell_before, "cell_after": found.cell_after} if len(found.cell_after) else {}
    size = len(found.after)
    asked = whole_number(UNIT.read(), size - 1)
    figure, order = step_figure(
        found.parts,
        found.values,
        {"before": found.before, "after": found.after} | cells,
        strings("before"),
        unit=asked,
    )
    matrix_place, equations_place = st.columns([1, 1], gap="large")
    with matrix_place:
        version = f"{direction}|{place}|{asked}|{view.encoding.text}"
        show_matrix(
            figure, answer, key="before_step", version=version, on_cell=lambda cell: _take(order, cell), files=True
        )
    unit, moved = int(order[0]) if asked is None else asked, np.abs(found.after - found.before)
    with equations_place:
        st.markdown(t("before.step_unit", unit=unit, moved=f"{moved[unit]:.3f}"))
        st.latex(equations(found, unit))
        st.caption(t("before.step_moved", mean=f"{moved.mean():.3f}", count=f"{len(order):,}"))
        model = recurrent_model(view.bundle)
        if isinstance(model, RecurrentLm) and model.config.one_hot:
            note = section("before", "step_note_one_hot")
        else:
            note = worded_section(view, "step_note", scale=f"{model.scale:.2f}")
        show_prose(note, small=True)


STEP = Part("before", "step", _show, group="reads")
