"""The sinusoidal matrix: its columns as waves, its rows, similarity over distance, and a step as a rotation."""

import math
import re
from functools import partial
from typing import Any

import streamlit as st

from pages.positions.figures.sinusoids import position_figure, similarity_chart, vector_chart, waves_chart
from pages.ui.asking import ask
from pages.ui.charts import Drawing, show_drawing
from pages.ui.experiment import ask_first, fragment, lazy_box
from pages.ui.exports import one_export
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.number_format import significant, significant_in_tex
from pages.ui.url import choose, chosen, chosen_option, held, keep, put, slid, slide
from transformer_core.analysis.positions.sinusoids import ShiftRotation, position_matrix, step_as_rotation

LEAST = 2
LONGEST = WIDEST = 512
MEASURES = ("cosine", "dot")
MOST_CURVES = 6
FIRST_CURVES = (0, 16, 32, 48)
NO_CURVES = "none"
SMALL = re.compile(r"[0-9]{1,3}")
ALIKE_WITHIN = 0.02


def choose_size(part: str, *, least: int) -> tuple[int, int]:
    """Show the sliders of length and width; each part of the page has its own values."""
    places, (length, d_model) = st.columns(2), _size_sliders(part, least)
    with places[0]:
        slide(t("positions.length"), **length)
    with places[1]:
        slide(t("positions.d_model"), **d_model)
    return chosen_size(part, least=least)


def _size_sliders(part: str, least: int) -> tuple[dict[str, Any], dict[str, Any]]:
    length = {"low": least, "high": LONGEST, "name": f"positions_{part}length", "default": 64}
    return length, {"low": 2, "high": WIDEST, "name": f"positions_{part}d", "default": 128, "step": 2}


def chosen_size(part: str, *, least: int) -> tuple[int, int]:
    """Return what the sliders of length and width hold, without them."""
    length, d_model = (int(slid(**slider)) for slider in _size_sliders(part, least))
    return length, d_model


def _read_dimensions(d_model: int, asked: Any) -> list[int] | None:
    """Return the columns that are chosen or that a link names, None where there are no such ones."""
    parts = asked if isinstance(asked, list) else [int(part) for part in str(asked).split(".") if SMALL.fullmatch(part)]
    found = [dimension for dimension in dict.fromkeys(parts) if dimension < d_model][:MOST_CURVES]
    return found if found or asked in ([], NO_CURVES) else None


def _choose_dimensions(d_model: int) -> None:
    """Show the choice of columns drawn as curves."""
    first, read = _first_dimensions(d_model), partial(_read_dimensions, d_model)
    key, value = held("positions_dims", first, read, f"0 … {d_model - 1}", instead=lambda _: first)
    picked = st.multiselect(
        t("positions.dimensions"),
        list(range(d_model)),
        value,
        key=key,
        max_selections=MOST_CURVES,
        format_func=str,
    )
    keep("positions_dims", ".".join(map(str, picked)) or NO_CURVES, ".".join(map(str, first)))


def _first_dimensions(d_model: int) -> list[int]:
    return [dimension for dimension in FIRST_CURVES if dimension < d_model]


def _chosen_dimensions(d_model: int, picked: int) -> list[int]:
    """Return the columns drawn as curves, the picked one among them, without their choice."""
    first, read = _first_dimensions(d_model), partial(_read_dimensions, d_model)
    return list(dict.fromkeys([*chosen("positions_dims", first, read, "", instead=lambda _: first), picked]))


def _pick(cell: tuple[int, int] | None) -> None:
    """Set position and pair to the cell that was clicked."""
    if cell is not None:
        put("positions_pos", cell[0])
        put("positions_pair", cell[1] // 2)


def _step_sliders(length: int, d_model: int) -> dict[str, dict[str, Any]]:
    """Return the ends of the sliders of the picked position, pair of dimensions and step."""
    last = d_model // 2 - 1
    return {
        "pos": {"low": 0, "high": length - 1, "name": "positions_pos", "default": min(12, length - 1)},
        "pair": {"low": 0, "high": last, "name": "positions_pair", "default": min(4, last)},
        "shift": {"low": 1, "high": 64, "name": "positions_shift", "default": 5},
    }


def _choose_step(length: int, d_model: int) -> None:
    """Show those sliders; there is none where there is nothing to choose from."""
    for place, (name, ends) in zip(st.columns(3), _step_sliders(length, d_model).items(), strict=True):
        with place:
            if ends["high"] > ends["low"]:
                slide(t(f"positions.{name}"), **ends)


def _chosen_step(length: int, d_model: int) -> tuple[int, int, int]:
    """Return the picked position, pair of dimensions and step, without their sliders."""
    all_ends = _step_sliders(length, d_model).values()
    pos, pair, shift = (int(slid(**ends)) if ends["high"] > ends["low"] else 0 for ends in all_ends)
    return pos, pair, shift


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


def live_matrix(view: View) -> Live:
    """Return the matrix of the chosen size, its curves and similarities, and the vector of the picked position."""
    words, ui = strings("positions"), strings("matrix")
    length, d_model = chosen_size("", least=LEAST)
    pos, pair, shift = _chosen_step(length, d_model)
    answer = ask(position_matrix, length=length, d_model=d_model)
    found = answer.value
    figure = position_figure(
        found.table,
        view.encoding.labels,
        words,
        ui,
        cell=(pos, 2 * pair),
        version=f"{length}x{d_model}|{pos}.{pair}|{view.encoding.text}",
    )
    waves = waves_chart(found.table, found.wavelengths, _chosen_dimensions(d_model, 2 * pair), words, pos=pos)
    measure = chosen_option("positions_measure", MEASURES, default="cosine")
    similarity = similarity_chart(found.cosines if measure == "cosine" else found.dots, words, measure=measure)
    step = ask(step_as_rotation, length=length, d_model=d_model, pos=pos, shift=shift, pair=pair)
    vector = vector_chart(found.table[pos], words, pair=pair)
    drawn = (("waves", waves, answer), ("similarity", similarity, answer), ("vector", vector, step))
    drawings = (
        Drawing(f"positions_{name}", chart, of, f"positions_{name}", t(f"positions.{name}_label", pos=pos))
        for name, chart, of in drawn
    )
    return Live((Picture("positions_matrix", figure, answer, pins=False),), drawings=tuple(drawings))


@fragment
@one_export
def matrix_part(view: View) -> None:
    """Show the matrix for any size, its curves and similarities, and the step of one position."""
    length, d_model = choose_size("", least=LEAST)
    matrix_place, picked_place = st.container(), st.container()
    with picked_place:
        st.subheader(t("positions.picked_heading"), anchor=False)
        _choose_step(length, d_model)
    pos, pair, shift = _chosen_step(length, d_model)
    left, right = matrix_place.columns([11, 9], gap="large")
    with right:
        _choose_dimensions(d_model)
        waves_place = st.container()
        measures = {name: t(f"positions.measure_{name}") for name in MEASURES}
        measure = choose(t("positions.measure"), measures, name="positions_measure", default="cosine")
    live = live_matrix(view)
    (matrix,), (waves, similarity, vector) = live.pictures, live.drawings
    assert isinstance(matrix, Picture)
    found = matrix.answer.value
    with left:
        show_picture(matrix, on_cell=_pick)
        export_picture(matrix)
        tell(section("positions", "matrix"), small=True)
    with waves_place:
        show_drawing(waves)
    with right:
        show_drawing(similarity)
        st.markdown(t("positions.deviation", deviation=significant(found.deviation), pairs=f"{found.pairs:,}"))
    with picked_place:
        _show_step(vector, d_model=d_model, pos=pos, pair=pair, shift=shift)
    sliders = {"positions_length": length, "positions_d": d_model}
    sliders |= {"positions_pos": pos, "positions_pair": pair, "positions_shift": shift}
    follow_finger("positions", "matrix", view, choices={"positions_measure": (MEASURES, measure)}, sliders=sliders)
    _try_width(length, d_model, float(found.cosines[-1]))
