"""Weights: any matrix before and after edits that stack, what the answers keep, and where one edit breaks them."""

from typing import Any

import numpy as np
import streamlit as st

from pages.figures.curves import Side, curves
from pages.lab.edits import add_edit, changes_of_weights, edits, edits_said, short_name, show_edits
from pages.lab.outcome import ask_effect, can_answer, changed_in, choose_answer, show_effect, show_on_set, show_words
from pages.lab.table import show_matrix_of
from pages.ui.asking import Answer
from pages.ui.charts import show_chart
from pages.ui.experiment import ask_first, lazy_box, say
from pages.ui.header import View
from pages.ui.healing import heal
from pages.ui.language import plain, t
from pages.ui.navigation import open_page
from pages.ui.number_format import percent
from pages.ui.read_only import read_only_said
from pages.ui.runs import follow
from pages.ui.url import choose, choose_from_list, slide
from pages.ui.waiting import awaited
from transformer_core.analysis.lab.healing import FEWEST_STEPS, MOST_STEPS, STEPS
from transformer_core.analysis.lab.weight_curve import (
    EVERY_MATRIX,
    KEPT,
    STRENGTHS,
    WeightCurve,
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


def show_weights(view: View) -> None:
    """Show the outcome under all edits, the chosen matrix, the edits, and a curve over one edit's strength."""
    if not can_answer(view):
        return
    matrix_place, operation_place, amount_place, add_place = st.columns([3, 5.4, 1.8, 1.1], vertical_alignment="bottom")
    with matrix_place:
        names = sorted(matrices_of(view.bundle.model), key=lambda name: "embedding" in name)
        parameter = (
            choose_from_list(t("lab.matrix"), {name: short_name(name) for name in names}, name="lab_matrix") or names[0]
        )
    with operation_place:
        said = {one: t(f"lab.operation_{one}") for one in OPERATIONS}
        operation = choose(t("lab.operation"), said, name="lab_operation", default="round")
    weight = require_parameter(view.bundle.model, parameter)
    with amount_place:
        amount = _choose_amount(operation, min(weight.shape))
    code = (parameter, operation, float(amount), 0)
    with add_place:
        st.button(
            t("lab.add_edit"),
            icon=":material/add:",
            key="lab_add",
            on_click=add_edit,
            args=(view, code),
            width="stretch",
        )
    effect = ask_effect(view, changes_of_weights(view))
    count = sum(one["on"] for one in edits(view))
    show_effect(view, effect, what=t("lab.what_weights", count=count, edits=edits_said(view)), part="weights")
    matrix_side, list_side = st.columns([3, 2], gap="large")
    with matrix_side:
        show_matrix_of(view, parameter)
    with list_side:
        show_edits(view)
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
        height=360,
    )
    show_chart(chart, answer, key="lab_curve_chart", stem="lab_weight_curve", label=t("lab.curve"))
