"""Mount the interactive matrix in a page and read what was clicked or painted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import streamlit as st

from pages.figures.matrix import MatrixFigure
from pages.kit.asking import Answer
from pages.kit.component import registered
from pages.kit.experiment import figure
from pages.kit.exports import caption_of, export_matrix
from pages.kit.header import View
from pages.kit.url import in_url, remember
from pages.language import strings, t

PIN = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure as a page mounts it.

    Args:
        key: unique on the page and the same at every run, or the component is remounted.
        figure: what is shown.
        answer: what it was drawn from; its files say so.
        of: what it shows of that, by name, such as a head; its files say that, too.
        pins: the link keeps its pinned cell by its key.
        version: any text that names this state; `data-painted` carries it once it is on the screen.
    """

    key: str
    figure: MatrixFigure
    answer: Answer[Any]
    of: Mapping[str, Any] = field(default_factory=dict)
    pins: bool = True
    version: str = ""

    def to_bytes(self, *, stamp: int = 0) -> bytes:
        """Return what the component takes.

        Args:
            stamp: as of MatrixFigure.
        """
        figure = _pinned(self.figure, in_url(f"pin_{self.key}")) if self.pins else self.figure
        about = {"caption": caption_of(self.answer.arguments, **self.of), "key": self.key, "version": self.version}
        return figure.to_bytes(strings("matrix"), stamp=stamp, **about)


@dataclass(frozen=True)
class Painted:
    """What a person has painted.

    Args:
        mask: the whole mask, as transformer_core.analysis.masks.codes writes it; from the browser, so to be checked.
        done: the stroke has ended; while it goes on, nothing need be kept of it.
    """

    mask: str
    done: bool


Runs = tuple[tuple[int, int], ...]  # of a stroke: the index of each run's first cell, row after row, and its length


def show_matrix(
    figure: MatrixFigure,
    answer: Answer[Any],
    *,
    key: str,
    of: Mapping[str, Any] = MappingProxyType({}),
    version: str = "",
    on_cell: Callable[[tuple[int, int] | None], None] | None = None,
    **options: Any,
) -> None:
    """Show a figure, as show_picture has it; where it is given no on_cell, the link keeps its pinned cell."""
    picture = Picture(key, figure, answer, of, pins=on_cell is None, version=version)
    show_picture(picture, on_cell=on_cell, **options)


def window_note(view: View, layer: int, *, both: bool = False) -> str:
    """Return in words what a layer's window lets a word see, "" where it has none.

    Args:
        both: on both sides, whatever the model's own mask hides.
    """
    window = view.bundle.config.window(layer)
    if window is None:
        return ""
    return t(f"axis.window_{'causal' if view.bundle.reader.causal and not both else 'both'}", before=window - 1)


def all_windows(view: View) -> str:
    """Return in words which layers have a window, and how wide each is, "" where none has one."""
    windowed = [f"{layer} ({window})" for layer, window in enumerate(view.bundle.config.windows) if window is not None]
    return t("axis.windows", layers=", ".join(windowed)) if windowed else ""


def export_picture(picture: Picture) -> None:
    """Offer a picture's files."""
    export_matrix(picture.figure, picture.answer, key=picture.key, of=picture.of)


def show_picture(
    picture: Picture,
    *,
    on_select: Callable[[str], None] | None = None,
    on_cell: Callable[[tuple[int, int] | None], None] | None = None,
    on_paint: Callable[[Painted], None] | None = None,
    on_stroke: Callable[[Runs], None] | None = None,
    on_turn: Callable[[str], None] | None = None,
    files: bool = False,
) -> None:
    """Show a figure; the highlight of what is clicked moves in the browser before the server answers.

    Args:
        picture: What to show.
        on_select: Called with the id of a newly chosen panel, before the page runs.
        on_cell: Called with the newly pinned cell, None when it was let go, before the page runs; by default the link
            keeps the cell, in whichever panel it is.
        on_paint: Called with what was painted on the figure's paint panel, before the page runs; while a stroke goes
            on, as often as the page keeps up.
        on_stroke: Called with each stroke of the figure's brush once it has ended, before the page runs.
        on_turn: Called with the names of all switches that are off, "-" between them, before the page runs.
        files: Offer its files below it.
    """
    key = picture.key

    def heard() -> None:
        raw = _raw(st.session_state.get(key))
        changed, (selected, cell, panel) = raw.get("changed", ()), map(raw.get, ("selected", "cell", "panel"))
        if on_select and "selected" in changed and isinstance(selected, str):
            on_select(selected)
        if "cell" not in changed:
            return
        pinned = (int(cell[0]), int(cell[1])) if isinstance(cell, list) and len(cell) == 2 else None
        if on_cell:
            on_cell(pinned)
        else:
            place = (panel if isinstance(panel, int) else 0, *(pinned or ()))
            remember(f"pin_{key}", pinned and ".".join(map(str, place)))

    with figure(key, key):
        registered("matrix")(
            key=key,
            data=picture.to_bytes(stamp=_stamp(key)),
            on_choice_change=heard,
            on_painted_change=lambda: _on_painted(key, on_paint, on_stroke),
            on_turned_change=lambda: _on_turned(key, on_turn),
        )
    if files:
        export_picture(picture)


def _on_painted(key: str, on_paint: Callable[[Painted], None] | None, on_stroke: Callable[[Runs], None] | None) -> None:
    raw = _raw(st.session_state.get(key), "painted")
    if on_paint and isinstance(raw.get("mask"), str):
        on_paint(Painted(raw["mask"], bool(raw.get("done"))))
    if on_stroke:
        for stamp, runs in _strokes(key, raw):
            st.session_state[f"stroke {key}"] = stamp
            on_stroke(runs)


def _on_turned(key: str, on_turn: Callable[[str], None] | None) -> None:
    off = _raw(st.session_state.get(key), "turned").get("off")
    if on_turn and isinstance(off, str):
        on_turn(off)


def _pinned(figure: MatrixFigure, written: str) -> MatrixFigure:
    """Return the figure with the cell pinned that a link writes as ``panel.row.col``, where it has that cell."""
    found = PIN.fullmatch(written)
    panel, row, col = map(int, found.groups()) if found else (0, 0, 0)
    if found is None or panel >= len(figure.panels):
        return figure
    height, width = figure.panels[panel].values.shape
    return replace(figure, cell=(row, col), cell_panel=panel) if row < height and col < width else figure


def _stamp(key: str) -> int:
    """Return the stamp of the last stroke that the page has heard of."""
    stamp = _raw(st.session_state.get(key), "painted").get("stamp", 0)
    return max(stamp if isinstance(stamp, int) else 0, st.session_state.get(f"stroke {key}", 0))


def _strokes(key: str, raw: dict[str, Any]) -> list[tuple[int, Runs]]:
    """Return the strokes that the page has not taken yet, each with its stamp; the browser repeats them until then."""
    taken = st.session_state.get(f"stroke {key}", 0)
    try:
        found = [(int(stamp), list(map(int, flat))) for stamp, flat in raw.get("strokes", ())]
    except (TypeError, ValueError, OverflowError):
        return []
    return [(stamp, tuple(zip(flat[::2], flat[1::2], strict=False))) for stamp, flat in found if stamp > taken]


def _raw(state: Any, name: str = "choice") -> dict[str, Any]:
    part = state.get(name) if isinstance(state, Mapping) else None
    return part if isinstance(part, dict) else {}
