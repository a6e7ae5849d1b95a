"""Weights: any matrix before and after edits that stack, what the answers keep, and where one edit breaks them."""

import json
from typing import Any

import numpy as np
import streamlit as st

from pages.figures.curves import Side, curves
from pages.lab.figures import numbered, tables
from pages.lab.outcome import ask_effect, can_answer, changed_in, choose_answer, show_effect, show_on_set, show_words
from pages.ui.asking import Answer, ask_once
from pages.ui.boxes import ask_first, awaited, lazy_box, say
from pages.ui.charts import show_chart
from pages.ui.header import View
from pages.ui.healing import heal
from pages.ui.language import plain, strings, t
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.navigation import open_page
from pages.ui.number_format import percent
from pages.ui.read_only import read_only_said
from pages.ui.runs import follow
from pages.ui.url import choose, choose_from_list, chosen_option, current, keep, set_choice, slide
from transformer_core.analysis.lab.changes import Code, changes_of
from transformer_core.analysis.lab.healing import FEWEST_STEPS, MOST_STEPS, STEPS
from transformer_core.analysis.lab.weight_curve import (
    EVERY_MATRIX,
    KEPT,
    STRENGTHS,
    Matrix,
    WeightCurve,
    edited_matrix,
    weight_curve,
)
from transformer_core.analysis.lab.weights import matrices_of, require_parameter

OPERATIONS = ("round", "round_rows", "prune", "rank", "scale", "noise", "zero")
AMOUNTS: dict[str, dict[str, Any]] = {
    "round": {"low": 1, "high": 8, "default": 3},
    "round_rows": {"low": 1, "high": 8, "default": 3},
    "prune": {"low": 0.0, "high": 0.99, "default": 0.5, "step": 0.01},
    "scale": {"low": -2.0, "high": 2.0, "default": 0.5, "step": 0.05},
    "noise": {"low": 0.0, "high": 3.0, "default": 0.5, "step": 0.05},
}
MOST_EDITS, MOST_ROWS, MOST_COLS = 24, 240, 480
STACK = "lab_weights"


def edits(view: View) -> list[dict[str, Any]]:
    """Return the edits in their order, each with whether it is on; those of other models' matrices are left out."""
    try:
        found = json.loads(str(current(STACK) or "[]")[:20_000])
        kept = [{"code": tuple(one["code"][:4]), "cells": one["code"][4], "on": bool(one["on"])} for one in found]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return []
    there = dict(view.bundle.model.named_parameters())
    return [one for one in kept[:MOST_EDITS] if one["code"][0] in there and _fits(one)]


def _fits(edit: dict[str, Any]) -> bool:
    try:
        changes_of([("weights", *edit["code"], edit["cells"])])
    except (ValueError, TypeError):
        return False
    return True


def _keep(kept: list[dict[str, Any]]) -> None:
    said = json.dumps([{"code": [*one["code"], one["cells"]], "on": one["on"]} for one in kept]) if kept else ""
    set_choice(STACK, said)
    keep(STACK, said, "")


def changes_of_weights(view: View) -> tuple[Code, ...]:
    """Return the edits that are on as changes."""
    return tuple(("weights", *one["code"], tuple(map(tuple, one["cells"]))) for one in edits(view) if one["on"])


def show_weights(view: View) -> None:
    """Show the outcome under all edits, the chosen matrix, the edits, and a curve over one edit's strength."""
    if not can_answer(view):
        return
    matrix_place, operation_place, amount_place, add_place = st.columns([3, 5.4, 1.8, 1.1], vertical_alignment="bottom")
    with matrix_place:
        names = sorted(matrices_of(view.bundle.model), key=lambda name: "embedding" in name)
        parameter = choose_from_list(t("lab.matrix"), {name: name for name in names}, name="lab_matrix") or names[0]
    with operation_place:
        said = {one: t(f"lab.operation_{one}") for one in OPERATIONS}
        operation = choose(t("lab.operation"), said, name="lab_operation", default="round")
    weight = require_parameter(view.bundle.model, parameter)
    with amount_place:
        amount = _choose_amount(operation, min(weight.shape))
    code = (parameter, operation, float(amount), 0)
    with add_place:
        st.button(
            t("lab.add_edit"), icon=":material/add:", key="lab_add", on_click=_add, args=(view, code), width="stretch"
        )
    effect = ask_effect(view, changes_of_weights(view))
    count = sum(one["on"] for one in edits(view))
    show_effect(view, effect, what=t("lab.what_weights", count=count, edits=_said(view)), part="weights")
    matrix_side, list_side = st.columns([3, 2], gap="large")
    with matrix_side:
        _show_matrix(view, parameter)
    with list_side:
        _show_edits(view)
        choose_answer(view)
    show_words(view, effect)
    show_on_set(view, changes_of_weights(view), key="weights")
    _show_curve(view, parameter)
    _show_healing(view)


def _show_healing(view: View) -> None:
    """Offer a run that trains on from the damaged weights, and open it on Train."""
    box = lazy_box(t("lab.heal"), icon=":material/healing:", key="lab_heal")
    if box is None:
        return
    with box:
        if read_only_said():
            return
        say(t("lab.heal_said"), small=True)
        steps = int(slide(t("lab.heal_steps"), FEWEST_STEPS, MOST_STEPS, name="lab_heal_steps", default=STEPS, step=10))
        changes = changes_of_weights(view)
        if not st.button(t("lab.heal_start"), icon=":material/play_arrow:", key="lab_heal_start", disabled=not changes):
            return
        try:
            store = heal(view.bundle.name, changes, steps=steps)
        except ValueError as error:
            st.info(plain(str(error)), icon=":material/info:")
            return
        follow(store.id)
        open_page("train")


def _choose_amount(operation: str, rank: int) -> float:
    if operation == "zero":
        return 0.0
    if operation == "rank":
        return slide(t("lab.amount_rank"), 0, rank, name="lab_amount_rank", default=max(1, rank // 8))
    said = t(f"lab.amount_{operation}")
    ends = AMOUNTS[operation]
    return slide(
        said,
        ends["low"],
        ends["high"],
        name=f"lab_amount_{operation}",
        default=ends["default"],
        step=ends.get("step", 1),
    )


def _add(view: View, code: tuple[Any, ...], cells: list[Any] | None = None) -> None:
    if len(edits(view)) < MOST_EDITS:
        _keep([*edits(view), {"code": code, "cells": cells or [], "on": True}])


def _name_of(edit: dict[str, Any]) -> str:
    parameter, operation, amount, _ = edit["code"]
    if operation == "paint":
        return t("lab.painted", cells=len(edit["cells"]), matrix=parameter)
    return t("lab.edit", operation=t(f"lab.operation_{operation}"), amount=f"{amount:g}", matrix=parameter)


def _said(view: View) -> str:
    return "; ".join(_name_of(one) for one in edits(view) if one["on"])


def _show_edits(view: View) -> None:
    kept = edits(view)
    st.markdown(t("lab.edits", count=len(kept)))
    for place, one in enumerate(kept):
        row = st.container(horizontal=True, vertical_alignment="center", gap="small")

        def turn(place: int = place) -> None:
            _keep([{**edit, "on": edit["on"] != (number == place)} for number, edit in enumerate(edits(view))])

        def drop(place: int = place) -> None:
            _keep([edit for number, edit in enumerate(edits(view)) if number != place])

        with row:
            icon = ":material/toggle_on:" if one["on"] else ":material/toggle_off:"
            said = plain(_name_of(one))
            st.button(
                said if one["on"] else f"~~{said}~~", icon=icon, key=f"lab_turn_{place}", on_click=turn, type="tertiary"
            )
            st.button(
                "", icon=":material/close:", key=f"lab_drop_{place}", on_click=drop, type="tertiary", help=t("lab.drop")
            )
    if not kept:
        st.caption(t("lab.no_edits"))


def _shown(table: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return a table small enough for the screen: each cell the number of largest size among those it stands for."""
    rows, cols = (-(-side // most) for side, most in zip(table.shape, (MOST_ROWS, MOST_COLS), strict=True))
    if rows == cols == 1:
        return table, 1, 1
    height, width = (-(-side // step) * step for side, step in zip(table.shape, (rows, cols), strict=True))
    whole = np.zeros((height, width), dtype=table.dtype)
    whole[: table.shape[0], : table.shape[1]] = table
    blocks = whole.reshape(height // rows, rows, width // cols, cols).transpose(0, 2, 1, 3)
    blocks = blocks.reshape(*blocks.shape[:2], -1)
    places = np.abs(blocks).argmax(-1)[..., None]
    return np.take_along_axis(blocks, places, -1)[..., 0], rows, cols


def _show_matrix(view: View, parameter: str) -> None:
    answer: Answer[Matrix] = ask_once(
        edited_matrix, bundle=view.bundle, parameter=parameter, changes=changes_of_weights(view)
    )
    found = answer.value
    which = chosen_option("lab_which", ("after", "before"), default="after")
    table, rows, cols = _shown(found.after if which == "after" else found.before)
    label = t(f"lab.matrix_{which}")
    row_names = numbered(table.shape[0]) if rows == 1 else tuple(f"{rows * place} …" for place in range(table.shape[0]))
    col_names = numbered(table.shape[1]) if cols == 1 else tuple(f"{cols * place} …" for place in range(table.shape[1]))
    figure = tables(
        {label: table},
        {label: row_names},
        {label: col_names},
        strings("lab_matrix"),
        strings("matrix"),
        filename="lab_matrix",
        version=f"{parameter}|{which}|{changes_of_weights(view)!r}",
    )
    picture = Picture("lab_matrix", figure, answer)
    choose(
        t("lab.which"),
        {one: t(f"lab.matrix_{one}") for one in ("after", "before")},
        name="lab_which",
        default="after",
        collapsed=True,
    )
    chosen = show_picture(picture)
    say(
        t(
            "lab.matrix_facts",
            shape=f"{found.before.shape[0]} × {found.before.shape[1]}",
            rank=found.rank,
            zeros=percent(found.zeros),
            distinct=f"{found.distinct:,}",
        ),
        small=True,
    )
    if rows * cols > 1:
        say(t("lab.summarised", rows=rows, cols=cols), small=True)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        export_picture(picture)
        _paint(view, parameter, found, chosen.cell, rows, cols)


def _paint(view: View, parameter: str, found: Matrix, cell: tuple[int, int] | None, rows: int, cols: int) -> None:
    """Show the exact numbers under the pinned cell, and a box that writes another one there."""
    if cell is None:
        st.caption(t("lab.paint_hint"))
        return
    row, col = cell[0] * rows, cell[1] * cols
    if rows * cols > 1:
        block = np.abs(found.after[row : row + rows, col : col + cols])
        inner = np.unravel_index(int(block.argmax()), block.shape)
        row, col = row + int(inner[0]), col + int(inner[1])
    if not (row < found.after.shape[0] and col < found.after.shape[1]):
        return
    now = float(found.after[row, col])
    value = st.number_input(
        t("lab.paint", row=row, col=col), value=now, format="%.5f", key=f"lab_cell_{parameter}_{row}_{col}"
    )
    code = (parameter, "paint", 0.0, 0)
    st.button(
        t("lab.paint_it"),
        icon=":material/brush:",
        key="lab_paint",
        on_click=_add,
        args=(view, code, [[row, col, value]]),
    )


def _show_curve(view: View, parameter: str) -> None:
    box = lazy_box(t("lab.curve"), icon=":material/show_chart:", key="lab_curve")
    if box is None:
        return
    with box:
        scope_place, operation_place = st.columns([2, 3])
        with scope_place:
            scopes = {"one": t("lab.curve_one"), "all": t("lab.curve_all")}
            scope = choose(t("lab.curve_of"), scopes, name="lab_scope", default="one")
        with operation_place:
            names = {one: t(f"lab.operation_{one}") for one in STRENGTHS}
            operation = choose(t("lab.operation"), names, name="lab_curve_operation", default="round")
        options = {name: t(f"lab.breaks_{name}") for name in ("early", "late", "never")}
        about = f"{view.bundle.name} {scope} {operation}"
        cover = ask_first(t("lab.curve_ask"), options, name="lab_breaks", about=about)
        asked = changed_in(view, parameter=EVERY_MATRIX if scope == "all" else parameter, operation=operation)
        with cover.picture():
            answer = awaited(weight_curve, t("lab.curve_running"), key="lab_curve", **asked)
            if answer is not None:
                _draw_curve(answer, operation)
        if answer is not None:
            cover.judge(*_broken(answer.value, operation))


def _broken(found: WeightCurve, operation: str) -> tuple[str, str]:
    if found.breaks < 0:
        return "never", t("lab.never_breaks", kept=f"{KEPT:.0%}", whole=percent(found.whole))
    early = "early" if found.breaks < len(found.strengths) / 2 else "late"
    said = t(
        "lab.breaks_at",
        operation=t(f"lab.operation_{operation}"),
        strength=f"{found.strengths[found.breaks]:g}",
        accuracy=percent(float(found.accuracy[found.breaks])),
        whole=percent(found.whole),
        kept=f"{KEPT:.0%}",
    )
    return early, said


def _draw_curve(answer: Answer[WeightCurve], operation: str) -> None:
    found = answer.value
    level = np.full(len(found.strengths), found.whole)
    series = {t("lab.curve_edit"): found.accuracy, t("lab.curve_noise"): found.random, t("lab.curve_whole"): level}
    broken = float(found.strengths[found.breaks]) if found.breaks >= 0 else None
    across = Side(t(f"lab.amount_{operation}"))
    chart = curves(
        found.strengths,
        series,
        across=across,
        up=Side(t("lab.curve_up"), domain=(0.0, 1.0), format=".0%"),
        at=broken,
        height=300,
    )
    show_chart(chart, answer, key="lab_curve_chart", stem="lab_weight_curve", label=t("lab.curve"))
