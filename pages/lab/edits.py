"""The stack of edits of weights: kept in the link, each on or off, and painted strokes joined into one edit."""

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import streamlit as st

from pages.kit.controls import Kept
from pages.kit.header import View
from pages.language import plain, t
from transformer_core.analysis.lab.changes import MOST_CHANGES, Code, changes_of, code_of
from transformer_core.analysis.lab.weights import EVERY, MATRIX_KINDS, Block, edits_of_matrices, matrix_kinds
from transformer_core.bundle import Bundle

MOST_EDITS, MOST_CHARACTERS = 24, 200_000  # characters of the whole stack
Edit = dict[str, Any]  # code: (parameter, operation, amount, seed); strokes; on


@dataclass(frozen=True)
class _Read:
    """The edits that a link names: those that are kept, and how many are not.

    Args:
        kept: in their order, each with whether it is on.
        others: of matrices that this model does not have, or that do not fit them.
        beyond: more than are kept.
        broken: nothing could be read.
    """

    kept: list[Edit]
    others: int = 0
    beyond: int = 0
    broken: bool = False


def _read(view: View, text: str) -> _Read:
    if len(text) > MOST_CHARACTERS:
        return _Read([], broken=True)
    try:
        found = json.loads(text or "[]")
        named = [{"code": tuple(one["code"][:4]), "strokes": one["code"][4], "on": bool(one["on"])} for one in found]
        kinds = matrix_kinds(view.bundle.model)
        there: dict[str, tuple[int, ...]] = dict.fromkeys(kinds, (0, 0))  # nothing is painted there
        there |= {name: weight.shape for name, weight in view.bundle.model.named_parameters()}
        fitting = [one for one in named if one["code"][0] in there and _fits(one, there[one["code"][0]])]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return _Read([], broken=True)
    made = accumulate(len(kinds.get(one["code"][0], (1,))) for one in fitting)
    most = min(MOST_EDITS, sum(count <= MOST_CHANGES for count in made))
    return _Read(fitting[:most], len(named) - len(fitting), len(fitting[most:]))


def _edits(view: View, text: str) -> list[Edit]:
    return _read(view, text).kept


EDITS = Kept("lab_weights", parse=_edits)


def _fits(edit: Edit, shape: tuple[int, ...]) -> bool:
    """Return whether an edit, which may come from a link, can be made in a matrix of this shape."""
    try:
        (change,) = changes_of([("weights", *edit["code"], edit["strokes"])])
    except (ValueError, TypeError):
        return False
    ends = [(row, col, row + height, col + width) for _, blocks in change.strokes for row, col, height, width in blocks]  # type: ignore[union-attr]
    rows, cols = (1, *shape)[-2:]
    return all(0 <= row < down <= rows and 0 <= col < right <= cols for row, col, down, right in ends)


def _keep(kept: list[Edit]) -> None:
    listed = [{"code": [*one["code"], one["strokes"]], "on": one["on"]} for one in kept]
    text = json.dumps(listed, separators=(",", ":")) if kept else ""
    if len(text) > MOST_CHARACTERS or len(kept) > MOST_EDITS:
        st.toast(t("lab.too_many_edits"), icon=":material/block:")
        return
    EDITS.set(text)


def short_name(bundle: Bundle, parameter: str) -> str:
    """Return a matrix's name as the page has it, as in ``encoder.layer0.self_attention.query_proj``; or a kind's words.

    Of shared layers all are named: ``encoder.layer0–11.self_attention.query_proj``.
    """
    if parameter in MATRIX_KINDS:
        kind = "all" if parameter == EVERY else parameter.removeprefix(EVERY)
        return t(f"lab.matrices_{kind}", count=len(matrix_kinds(bundle.model).get(parameter, ())))
    shared = getattr(bundle.config, "shared_layers", False)
    first = f".layer0–{bundle.config.n_layers - 1}." if shared else ".layer0."
    return parameter.replace(".stack.layers.0.", first).replace(".stack.layers.", ".layer").removesuffix(".weight")


def narrow_name(bundle: Bundle, parameter: str) -> str:
    """Return a matrix's name in fewer letters, as in ``encoder.layer0.query``."""
    name = short_name(bundle, parameter)
    return name.replace(".self_attention.", ".").replace(".feed_forward.", ".").removesuffix("_proj")


def changes_of_weights(view: View) -> tuple[Code, ...]:
    """Return the edits that are on as changes, one for each matrix of a kind."""
    found: list[Code] = []
    for one in EDITS.read(view):
        if one["on"] and one["code"][0] in MATRIX_KINDS:
            found += map(code_of, edits_of_matrices(view.bundle.model, *one["code"]))
        elif one["on"]:
            found.append(("weights", *one["code"], _tuples(one["strokes"])))
    return tuple(found)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def add_edit(view: View, code: tuple[Any, ...]) -> None:
    """Put an edit after the others."""
    _keep([*EDITS.read(view), {"code": code, "strokes": [], "on": True}])


def add_stroke(view: View, parameter: str, value: float, blocks: tuple[Block, ...]) -> None:
    """Put a stroke into the last edit where that is painted in the same matrix and on, else into a new one."""
    kept = EDITS.read(view)
    if not kept or kept[-1]["code"][:2] != (parameter, "paint") or not kept[-1]["on"]:
        kept.append({"code": (parameter, "paint", 0.0, 0), "strokes": [], "on": True})
    last = kept[-1] | {"strokes": [*kept[-1]["strokes"], [value, blocks]]}
    if _fits(last, dict(view.bundle.model.named_parameters())[parameter].shape):
        _keep([*kept[:-1], last])
    else:
        st.toast(t("lab.too_many_edits"), icon=":material/block:")


def _last_painted(view: View, parameter: str) -> int:
    """Return the place of the last edit that is painted in a matrix, -1 where none is."""
    places = [place for place, one in enumerate(EDITS.read(view)) if one["code"][:2] == (parameter, "paint")]
    return places[-1] if places else -1


def offer_undo(view: View, parameter: str) -> None:
    """Show the button that takes back the last stroke in a matrix."""
    place = _last_painted(view, parameter)

    def undo() -> None:
        kept = EDITS.read(view)
        shorter = kept[place] | {"strokes": kept[place]["strokes"][:-1]}
        _keep([*kept[:place], *([shorter] if shorter["strokes"] else []), *kept[place + 1 :]])

    st.button(t("lab.undo"), icon=":material/undo:", key="lab_undo", on_click=undo, disabled=place < 0)


def _name_of(view: View, edit: Edit) -> str:
    parameter, operation, amount, _ = edit["code"]
    matrix = short_name(view.bundle, parameter)
    if operation == "paint":
        rows, cols = (1, *dict(view.bundle.model.named_parameters())[parameter].shape)[-2:]
        cells = np.zeros((rows, cols), dtype=bool)
        for _, blocks in edit["strokes"]:
            for row, col, height, width in blocks:
                cells[row : row + height, col : col + width] = True
        return t("lab.painted", cells=f"{int(cells.sum()):,}", strokes=len(edit["strokes"]), matrix=matrix)
    return t("lab.edit", operation=t(f"lab.operation_{operation}"), amount=f"{amount:g}", matrix=matrix)


def edits_in_words(view: View) -> str:
    """Return what the edits that are on do, in words."""
    return "; ".join(_name_of(view, one) for one in EDITS.read(view) if one["on"])


def show_edits(view: View) -> None:
    """Show the edits, each with buttons that turn it off and take it out."""
    found = _read(view, EDITS.written(view))
    kept = found.kept
    st.markdown(t("lab.edits", count=len(kept)))
    for said, count in (("beyond", found.beyond), ("others", found.others), ("broken", int(found.broken))):
        if count:
            st.warning(t(f"lab.edits_{said}", count=count, most=MOST_EDITS), icon=":material/link_off:")
    for place, one in enumerate(kept):
        name_place, drop_place = st.columns([8, 1], vertical_alignment="center", gap="small")

        def turn(place: int = place) -> None:
            _keep([{**edit, "on": edit["on"] != (number == place)} for number, edit in enumerate(EDITS.read(view))])

        def drop(place: int = place) -> None:
            _keep([edit for number, edit in enumerate(EDITS.read(view)) if number != place])

        with name_place:
            icon = ":material/toggle_on:" if one["on"] else ":material/toggle_off:"
            words = plain(_name_of(view, one))
            label = words if one["on"] else f"~~{words}~~"
            st.button(label, icon=icon, key=f"lab_turn_{place}", on_click=turn, type="tertiary")
        with drop_place:
            st.button(
                "", icon=":material/close:", key=f"lab_drop_{place}", on_click=drop, type="tertiary", help=t("lab.drop")
            )
    if not kept:
        st.caption(t("lab.no_edits"))
