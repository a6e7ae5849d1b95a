"""The picture of a matrix: as it is and with its edits, whole or number by number, and a brush that writes into it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from pages.kit.asking import Answer, ask_once
from pages.kit.controls import Choice, Slider
from pages.kit.experiment import say
from pages.kit.header import View
from pages.kit.matrix import Picture, Runs, export_picture, show_picture
from pages.kit.number_format import percent
from pages.lab.edits import add_stroke, changes_of_weights, offer_undo, short_name
from pages.lab.figures import tables
from pages.language import strings, t
from transformer_core.analysis.lab.weight_curve import Matrix, edited_matrix
from transformer_core.analysis.lab.weights import Block, blocks_of, matrices_of, matrix_kinds, require_parameter

MOST_ROWS, MOST_COLS = 240, 480


def show_tables(
    key: str,
    shown: Mapping[str, np.ndarray],
    rows: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    answer: Answer[Any],
    *,
    version: str,
    words: Mapping[str, str],
    kind: str = "probability",
    said: str = "",
) -> None:
    """Show tables beside each other on one scale, and below them their files and a sentence.

    Args:
        key: of the figure, and the name of its files.
        shown, rows, columns, words, kind: as of figures.tables; version: as of Picture.
        said: "" for none.
    """
    figure = tables(shown, rows, columns, words, filename=key, kind=kind)
    picture = Picture(key, figure, answer, version=version)
    show_picture(picture)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        export_picture(picture)
        if said:
            say(said, small=True)


def _names(view: View) -> list[str]:
    return sorted(matrices_of(view.bundle.model), key=lambda name: "embedding" in name)


def _matrices(view: View) -> dict[str, str]:
    return {name: short_name(view.bundle, name) for name in (*matrix_kinds(view.bundle.model), *_names(view))}


MATRIX = Choice("lab_matrix", _matrices, default=lambda view: _names(view)[0], label="lab.matrix", form="list")
WHICH = Choice("lab_which", ("after", "paint", "before"), label="lab.which", words="lab.matrix_{}", collapsed=True)
BRUSH = Slider("lab_brush", -2.0, 2.0, 0.0, step=0.05, kind=float, label="lab.brush", format="%.2f")
WINDOW = Choice("lab_window", ("whole", "part"), label="lab.window", words="lab.window_{}")
ROW = Slider("lab_row", 0, lambda view: shape_of(view)[0] - MOST_ROWS, 0, label="lab.first_row")
COLUMN = Slider("lab_column", 0, lambda view: shape_of(view)[1] - MOST_COLS, 0, label="lab.first_column")


def _seen(view: View) -> str:
    """Return which matrix is on the screen: the chosen one, or the first of the kind."""
    return next(iter(matrix_kinds(view.bundle.model).get(MATRIX.read(view), ())), MATRIX.read(view))


def shape_of(view: View) -> tuple[int, int]:
    """Return how many rows and columns the matrix on the screen has."""
    height, width = require_parameter(view.bundle.model, _seen(view)).shape
    return height, width


def full_rank(view: View) -> int:
    """Return the most singular values that a chosen matrix has."""
    names = matrix_kinds(view.bundle.model).get(MATRIX.read(view), (MATRIX.read(view),))
    return max(min(require_parameter(view.bundle.model, name).shape) for name in names)


@dataclass(frozen=True)
class Window:
    """What of a matrix is on the screen, and how many of its numbers each cell stands for.

    Args:
        row, col: the first of each that is shown.
        height, width: how many are shown.
        rows, cols: how many each cell stands for.
    """

    row: int
    col: int
    height: int
    width: int
    rows: int = 1
    cols: int = 1

    def cells(self, table: np.ndarray) -> np.ndarray:
        """Return the shown part of a table: each cell the number of largest size among those it stands for."""
        part = table[self.row : self.row + self.height, self.col : self.col + self.width]
        if self.rows == self.cols == 1:
            return part
        padding = [(0, -side % step) for side, step in zip(part.shape, (self.rows, self.cols), strict=True)]
        whole = np.pad(part, padding)
        height, width = whole.shape[0] // self.rows, whole.shape[1] // self.cols
        blocks = whole.reshape(height, self.rows, width, self.cols).transpose(0, 2, 1, 3).reshape(height, width, -1)
        return np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)[..., 0]

    def labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the labels of the rows and the columns on the screen."""
        more_rows, more_cols = (" …" if step > 1 else "" for step in (self.rows, self.cols))
        rows = range(self.row, self.row + self.height, self.rows)
        cols = range(self.col, self.col + self.width, self.cols)
        return tuple(f"{row}{more_rows}" for row in rows), tuple(f"{col}{more_cols}" for col in cols)

    def painted(self, runs: Runs) -> tuple[Block, ...]:
        """Return the blocks of the matrix that a stroke over cells on the screen stands for."""
        down, across = map(len, self.labels())
        cells = np.zeros(down * across, dtype=bool)
        for start, count in runs:
            cells[max(0, start) : max(0, start + count)] = True
        found = []
        for row, col, height, width in blocks_of(cells.reshape(down, across)):
            last_row = min((row + height) * self.rows, self.height)
            last_col = min((col + width) * self.cols, self.width)
            top, left = row * self.rows, col * self.cols
            found.append((self.row + top, self.col + left, last_row - top, last_col - left))
        return tuple(found)


def _show_window(view: View) -> Window:
    """Show what chooses a part of a matrix that is too large for the screen, and return the part."""
    height, width = shape_of(view)
    rows, cols = -(-height // MOST_ROWS), -(-width // MOST_COLS)
    if rows == cols == 1:
        return Window(0, 0, height, width)
    if WINDOW.show() == "whole":
        return Window(0, 0, height, width, rows, cols)
    return Window(ROW.show(view), COLUMN.show(view), min(height, MOST_ROWS), min(width, MOST_COLS))


def _show_brush(view: View, parameter: str) -> tuple[str, float | None]:
    """Show what chooses which matrix is on the screen, and, where it is painted, the brush; return both."""
    which_place, brush_place, undo_place = st.columns([2.7, 1.7, 2.2], vertical_alignment="bottom")
    with which_place:
        which = WHICH.show()
    if which != "paint":
        return which, None
    with brush_place:
        brush = BRUSH.show()
    with undo_place:
        offer_undo(view, parameter)
    return which, brush


def show_matrix(view: View) -> None:
    """Show the chosen matrix before or after the edits, its facts, and the brush; of a kind, its first one."""
    parameter = _seen(view)
    if parameter != MATRIX.read(view):
        say(t("lab.first_of_kind", matrix=short_name(view.bundle, parameter)), small=True)
    answer: Answer[Matrix] = ask_once(
        edited_matrix, bundle=view.bundle, parameter=parameter, changes=changes_of_weights(view)
    )
    found = answer.value
    which, brush = _show_brush(view, parameter)
    window = _show_window(view)
    label = t(f"lab.matrix_{'before' if which == 'before' else 'after'}")
    rows, columns = window.labels()
    figure = tables(
        {label: window.cells(found.before if which == "before" else found.after)},
        {label: rows},
        {label: columns},
        strings("lab_matrix"),
        filename="lab_matrix",
        brush=brush,
    )
    version = f"{parameter}|{which}|{brush}|{window}|{changes_of_weights(view)!r}"
    picture = Picture("lab_matrix", replace(figure, strings=strings("lab_brush")), answer, version=version)

    def painted(runs: Runs) -> None:
        if brush is not None:
            add_stroke(view, parameter, brush, window.painted(runs))

    show_picture(picture, on_stroke=painted)
    facts = {"rank": found.rank, "zeros": percent(found.zeros), "distinct": f"{found.distinct:,}"}
    say(t("lab.matrix_facts", shape=f"{found.before.shape[0]} × {found.before.shape[1]}", **facts), small=True)
    if window.rows * window.cols > 1:
        words = "lab.summarised_brush" if which == "paint" else "lab.summarised"
        say(t(words, rows=window.rows, cols=window.cols), small=True)
    export_picture(picture)
