"""The sinusoidal matrix: its columns as waves, its rows, similarity over distance, and a step as a rotation."""

import math
import re
from typing import Any

import streamlit as st

from pages.positions.figures.sinusoids import position_figure, similarity_chart, vector_chart, waves_chart
from pages.ui.asking import ask
from pages.ui.boxes import ask_first, lazy_box
from pages.ui.charts import show_chart
from pages.ui.exports import export_matrix
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.matrix import show_matrix
from pages.ui.number_format import significant, significant_in_tex
from pages.ui.url import choose, held, keep, put, slide
from transformer_core.analysis.positions.sinusoids import position_matrix, step_as_rotation

LONGEST = WIDEST = 512
MOST_CURVES = 6
FIRST_CURVES = (0, 16, 32, 48)
NO_CURVES = "none"
SMALL = re.compile(r"[0-9]{1,3}")
ALIKE_WITHIN = 0.02


def choose_size(part: str, *, least: int) -> tuple[int, int]:
    """Show the sliders of length and width; each part of the page has its own values."""
    places = st.columns(2)
    with places[0]:
        length = slide(t("positions.length"), least, LONGEST, name=f"positions_{part}length", default=64)
    with places[1]:
        d_model = slide(t("positions.d_model"), 2, WIDEST, name=f"positions_{part}d", default=128, step=2)
    return int(length), int(d_model)


def _choose_dimensions(d_model: int, picked: int) -> list[int]:
    """Show the choice of columns drawn as curves, and return them with the picked one."""

    def read(asked: Any) -> list[int] | None:
        parts = (
            asked if isinstance(asked, list) else [int(part) for part in str(asked).split(".") if SMALL.fullmatch(part)]
        )
        found = [dimension for dimension in dict.fromkeys(parts) if dimension < d_model][:MOST_CURVES]
        return found if found or asked in ([], NO_CURVES) else None

    first = [dimension for dimension in FIRST_CURVES if dimension < d_model]
    key, value = held("positions_dims", first, read, f"0 … {d_model - 1}", instead=lambda _: first)
    chosen = st.multiselect(
        t("positions.dimensions"),
        list(range(d_model)),
        value,
        key=key,
        max_selections=MOST_CURVES,
        format_func=str,
    )
    keep("positions_dims", ".".join(map(str, chosen)) or NO_CURVES, ".".join(map(str, first)))
    return list(dict.fromkeys([*chosen, picked]))


def _pick(cell: tuple[int, int] | None) -> None:
    """Set position and pair to the cell that was clicked."""
    if cell is not None:
        put("positions_pos", cell[0])
        put("positions_pair", cell[1] // 2)


def _choose_step(length: int, d_model: int) -> tuple[int, int, int]:
    """Show the sliders of the picked position, pair of dimensions and step."""
    places = st.columns(3)
    with places[0]:
        pos = slide(t("positions.pos"), 0, length - 1, name="positions_pos", default=min(12, length - 1))
    with places[1]:
        if d_model > 2:
            last = d_model // 2 - 1
            pair = slide(t("positions.pair"), 0, last, name="positions_pair", default=min(4, last))
        else:
            pair = 0
    with places[2]:
        shift = slide(t("positions.shift"), 1, 64, name="positions_shift", default=5)
    return int(pos), int(pair), int(shift)


def _column(above: float, below: float) -> str:
    """Return a column of two numbers in LaTeX."""
    return rf"\begin{{bmatrix}}{above:.4f}\\{below:.4f}\end{{bmatrix}}"


def _waves_at(pos: int) -> str:
    """Return the pair of a position as a formula in LaTeX."""
    return rf"\begin{{bmatrix}}\sin({pos}\,\omega)\\\cos({pos}\,\omega)\end{{bmatrix}}"


def _show_step(table, words, *, length: int, d_model: int, pos: int, pair: int, shift: int) -> None:
    answer = ask(step_as_rotation, length=length, d_model=d_model, pos=pos, shift=shift, pair=pair)
    step = answer.value
    left, right = st.columns(2, gap="large")
    with left:
        show_chart(
            vector_chart(table[pos], words, pair=pair),
            answer,
            key="positions_vector",
            stem="positions_vector",
            label=t("positions.vector_label", pos=pos),
        )
    with right:
        tell(section("positions", "rotation"))
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


def _try_width(length: int, d_model: int, farthest: float) -> None:
    """Ask how half the width changes the similarity of both ends, then compute it."""
    box = lazy_box(t("positions.try_width"), icon=":material/science:", key="positions_try")
    if box is None or d_model < 4:
        return
    half = 2 * (d_model // 4)
    options = {name: t(f"positions.width_{name}") for name in ("more", "same", "less")}
    with box:
        question = section("positions", "try_width").format(length=length, d_model=d_model, half=half)
        cover = ask_first(question, options, name="positions_width", about=f"{length} {d_model}")
        narrow = float(ask(position_matrix, length=length, d_model=half).value.cosines[-1])
        moved = narrow - farthest
        outcome = "same" if abs(moved) <= ALIKE_WITHIN else "more" if moved > 0 else "less"
        numbers = t("positions.width_measured", wide=f"{farthest:.4f}", narrow=f"{narrow:.4f}", half=half)
        cover.judge(outcome, numbers)


@st.fragment
def matrix_part(view: View) -> None:
    """Show the matrix for any size, its curves and similarities, and the step of one position."""
    words, ui = strings("positions"), strings("matrix")
    length, d_model = choose_size("", least=2)
    answer = ask(position_matrix, length=length, d_model=d_model)
    found = answer.value
    matrix_place, picked_place = st.container(), st.container()
    with picked_place:
        st.subheader(t("positions.picked_heading"), anchor=False)
        pos, pair, shift = _choose_step(length, d_model)
    left, right = matrix_place.columns([11, 9], gap="large")
    with left:
        figure = position_figure(
            found.table,
            view.encoding.labels,
            words,
            ui,
            cell=(pos, 2 * pair),
            version=f"{length}x{d_model}|{pos}.{pair}|{view.encoding.text}",
        )
        show_matrix(figure, answer, key="positions_matrix", on_cell=_pick)
        export_matrix(figure, answer, key="positions_matrix")
        tell(section("positions", "matrix"), small=True)
    with right:
        dimensions = _choose_dimensions(d_model, 2 * pair)
        show_chart(
            waves_chart(found.table, found.wavelengths, dimensions, words, pos=pos),
            answer,
            key="positions_waves",
            stem="positions_waves",
            label=t("positions.waves_label"),
        )
        measure = choose(
            t("positions.measure"),
            {name: t(f"positions.measure_{name}") for name in ("cosine", "dot")},
            name="positions_measure",
            default="cosine",
        )
        values = found.cosines if measure == "cosine" else found.dots
        show_chart(
            similarity_chart(values, words, measure=measure),
            answer,
            key="positions_similarity",
            stem="positions_similarity",
            label=t("positions.similarity_label"),
        )
        st.markdown(t("positions.deviation", deviation=significant(found.deviation), pairs=f"{found.pairs:,}"))
    with picked_place:
        _show_step(found.table, words, length=length, d_model=d_model, pos=pos, pair=pair, shift=shift)
    _try_width(length, d_model, float(found.cosines[-1]))
