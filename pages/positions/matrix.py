"""The sinusoidal matrix: its columns as waves, its rows, similarity over distance, and a step as a rotation."""

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from pages.kit.asking import ask
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Control, Slider, Values, show_in_columns
from pages.kit.experiment import ask_first, experiment, fragment, options_of
from pages.kit.exports import one_export
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.number_format import significant, significant_in_tex
from pages.kit.url import chosen, held, keep
from pages.language import section, strings, t
from pages.positions.figures.sinusoids import position_figure, similarity_chart, vector_chart, waves_chart
from pages.room import Part
from transformer_core.analysis.positions.sinusoids import ShiftRotation, position_matrix, step_as_rotation

LONGEST = WIDEST = 512
MOST_CURVES = 6
FIRST_CURVES = (0, 16, 32, 48)
NO_CURVES = "none"
SMALL = re.compile(r"[0-9]{1,3}")
ALIKE_WITHIN = 0.02


def size_controls(part: str, *, least: int) -> tuple[Slider[int], Slider[int]]:
    """Return the sliders of length and width; each part of the page has its own values."""
    return (
        Slider(f"positions_{part}length", least, LONGEST, 64, label="positions.length"),
        Slider(f"positions_{part}d", 2, WIDEST, 128, step=2, label="positions.d_model"),
    )


def _read_columns(d_model: int, asked: Any) -> list[int] | None:
    """Return the columns that are chosen or that a link names, None where there are no such ones."""
    parts = asked if isinstance(asked, list) else [int(part) for part in str(asked).split(".") if SMALL.fullmatch(part)]
    found = [column for column in dict.fromkeys(parts) if column < d_model][:MOST_CURVES]
    return found if found or asked in ([], NO_CURVES) else None


@dataclass(frozen=True)
class Columns(Control[list[int]]):
    """The columns that are drawn as curves; in a link, their numbers with dots between them."""

    def default_of(self, view: View | None = None) -> list[int]:
        return [column for column in FIRST_CURVES if column < D_MODEL.read(view)]

    def link_of(self, value: list[int]) -> str:
        return ".".join(map(str, value)) or NO_CURVES

    def _arguments(self, view: View | None) -> dict[str, Any]:
        first, d_model = self.default_of(view), D_MODEL.read(view)
        read = partial(_read_columns, d_model)
        return {"default": first, "read": read, "options": f"0 … {d_model - 1}", "instead": lambda _: first}

    def read(self, view: View | None = None) -> list[int]:
        return chosen(self.name, **self._arguments(view))

    def show(self, view: View | None = None) -> list[int]:
        key, value = held(self.name, **self._arguments(view))
        columns = list(range(D_MODEL.read(view)))
        label = t("positions.dimensions")
        picked = st.multiselect(label, columns, value, key=key, max_selections=MOST_CURVES, format_func=str)
        keep(self.name, self.link_of(picked), self.link_of(self.default_of(view)))
        return picked


def _last_pos(view: View) -> int:
    return LENGTH.read(view) - 1


def _last_pair(view: View) -> int:
    return D_MODEL.read(view) // 2 - 1


LENGTH, D_MODEL = size_controls("", least=2)
COLUMNS = Columns("positions_dims")
MEASURE = Choice("positions_measure", ("cosine", "dot"), label="positions.measure", words="positions.measure_{}")
POS = Slider("positions_pos", 0, _last_pos, lambda view: min(12, _last_pos(view)), label="positions.pos")
PAIR = Slider("positions_pair", 0, _last_pair, lambda view: min(4, _last_pair(view)), label="positions.pair")
SHIFT = Slider("positions_shift", 1, 64, 5, label="positions.shift")


def _pick(view: View, cell: tuple[int, int] | None) -> None:
    """Set position and pair to the cell that was clicked."""
    if cell is not None:
        POS.take(cell[0], view)
        PAIR.take(cell[1] // 2, view)


def _column(above: float, below: float) -> str:
    """Return a column of two numbers in LaTeX."""
    return rf"\begin{{bmatrix}}{above:.4f}\\{below:.4f}\end{{bmatrix}}"


def _waves_at(pos: int) -> str:
    """Return the pair of a position as a formula in LaTeX."""
    return rf"\begin{{bmatrix}}\sin({pos}\,\omega)\\\cos({pos}\,\omega)\end{{bmatrix}}"


def _show_step(vector: Drawing, *, d_model: int, pos: int, pair: int, shift: int) -> None:
    step: ShiftRotation = vector.answer.value
    left, right = st.columns(2, gap="large")
    with left:
        show_drawing(vector)
    with right:
        show_prose(section("positions", "rotation"))
        (a, b), (c, d) = step.rotation
        before, turned, after = (_column(*values) for values in (step.before, step.turned, step.after))
        omega = rf"\omega=10000^{{-{2 * pair}/{d_model}}}={significant_in_tex(step.frequency, 4)}"
        st.latex(rf"PE_{{{pos}}}={_waves_at(pos)}={before},\quad {omega}")
        rotation = rf"\begin{{bmatrix}}{a:.4f}&{b:.4f}\\{c:.4f}&{d:.4f}\end{{bmatrix}}"
        st.latex(rf"{rotation}{before}={turned}")
        st.latex(rf"PE_{{{pos + shift}}}={_waves_at(pos + shift)}={after}")
        st.markdown(
            t(
                "positions.step",
                angle=significant(step.angle, 4),
                turns=significant(step.angle / (2 * math.pi), 3),
                shift=shift,
                difference=significant(step.difference),
            )
        )


@experiment("positions_try", "positions.try_width")
def _try_width(length: int, d_model: int, farthest: float) -> None:
    """Ask how half the width changes the similarity of both ends, then compute it."""
    if d_model < 4:
        return
    half = 2 * (d_model // 4)
    options = options_of("positions.width_{}", ("more", "same", "less"))
    question = section("positions", "try_width").format(length=length, d_model=d_model, half=half)
    cover = ask_first(question, options, name="positions_width", about=f"{length} {d_model}")
    narrow = float(ask(position_matrix, length=length, d_model=half).value.cosines[-1])
    moved = narrow - farthest
    outcome = "same" if abs(moved) <= ALIKE_WITHIN else "more" if moved > 0 else "less"
    numbers = t("positions.width_measured", wide=f"{farthest:.4f}", narrow=f"{narrow:.4f}", half=half)
    cover.judge(outcome, numbers)


def _picture(view: View, values: Values) -> Live:
    """Return the matrix of the chosen size, its curves and similarities, and the vector of the picked position."""
    words = strings("positions")
    length, d_model, pos, pair = values[LENGTH], values[D_MODEL], values[POS], values[PAIR]
    answer = ask(position_matrix, length=length, d_model=d_model)
    found = answer.value
    figure = position_figure(found.table, view.encoding.labels, words, cell=(pos, 2 * pair))
    version = f"{length}x{d_model}|{pos}.{pair}|{view.encoding.text}"
    picture = Picture("positions_matrix", figure, answer, pins=False, version=version)
    columns = list(dict.fromkeys([*values[COLUMNS], 2 * pair]))  # the picked one among them
    waves = waves_chart(found.table, found.wavelengths, columns, words, pos=pos)
    measure = values[MEASURE]
    similarity = similarity_chart(found.cosines if measure == "cosine" else found.dots, words, measure=measure)
    step = ask(step_as_rotation, length=length, d_model=d_model, pos=pos, shift=values[SHIFT], pair=pair)
    vector = vector_chart(found.table[pos], words, pair=pair)
    drawn = (("waves", waves, answer), ("similarity", similarity, answer), ("vector", vector, step))
    drawings = (
        Drawing(f"positions_{name}", chart, of, f"positions_{name}", t(f"positions.{name}_label", pos=pos))
        for name, chart, of in drawn
    )
    return Live((picture,), drawings=tuple(drawings))


@fragment
@one_export
def _show(view: View) -> None:
    """Show the matrix for any size, its curves and similarities, and the step of one position."""
    length, d_model = show_in_columns(view, LENGTH, D_MODEL)
    matrix_place, picked_place = st.container(), st.container()
    with picked_place:
        st.subheader(t("positions.picked_heading"), anchor=False)
        pos, pair, shift = show_in_columns(view, POS, PAIR, SHIFT)
    left, right = matrix_place.columns([11, 9], gap="large")
    with right:
        COLUMNS.show(view)
        waves_place = st.container()
        MEASURE.show(view)
    live = MATRIX.live(view)
    (matrix,), (waves, similarity, vector) = live.matrices, live.drawings
    found = matrix.answer.value
    with left:
        show_picture(matrix, on_cell=partial(_pick, view), files=True)
        show_prose(section("positions", "matrix"), small=True)
    with waves_place:
        show_drawing(waves)
    with right:
        show_drawing(similarity)
        st.markdown(t("positions.deviation", deviation=significant(found.deviation), pairs=f"{found.pairs:,}"))
    with picked_place:
        _show_step(vector, d_model=d_model, pos=pos, pair=pair, shift=shift)
    MATRIX.follow(view)
    _try_width(length, d_model, float(found.cosines[-1]))


MATRIX = Part(
    "positions",
    "matrix",
    _show,
    _picture,
    (LENGTH, D_MODEL, COLUMNS, MEASURE, POS, PAIR, SHIFT),
)
