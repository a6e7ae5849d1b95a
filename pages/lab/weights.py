"""Weights: any matrix before and after edits that stack, what the answers keep, and where one edit breaks them."""

import numpy as np
import streamlit as st

from pages.figures.curves import PALETTE, Side, curves
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.models import OF_RUN, called, open_bundle
from pages.kit.navigation import open_page
from pages.kit.number_format import percent
from pages.kit.runs import begin_run, find_run, follow, refuse_read_only
from pages.kit.text_set import show_set
from pages.kit.waiting import awaited_or_why
from pages.lab.edits import EDITS, add_edit, changes_of_weights, edits_in_words, narrow_name, short_name, show_edits
from pages.lab.outcome import ask_effect, can_answer, measured, show_answer, show_effect, show_on_set, show_words
from pages.lab.table import MATRIX, full_rank, show_matrix, show_tables
from pages.language import joined, plain, strings, t
from pages.room import Part
from pages.serving.owners import may_change
from transformer_core.analysis.lab.changes import Code
from transformer_core.analysis.lab.healing import FEWEST_STEPS, MOST_STEPS, STEPS, beginning_of, heal_spec
from transformer_core.analysis.lab.text_sets import Among
from transformer_core.analysis.lab.weight_curve import (
    KEPT,
    STRENGTHS,
    WeightCurve,
    WeightTable,
    weight_curve,
    weight_table,
)
from transformer_core.analysis.lab.weights import MATRIX_KINDS
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.run_store import RunStore

OPERATION = Choice(
    "lab_operation",
    ("round", "round_rows", "prune", "rank", "scale", "noise", "zero"),
    label="lab.operation",
    words="lab.operation_{}",
)
AMOUNTS = {  # of the operations that have any
    "round": Slider("lab_amount_round", 1, 8, 3, label="lab.amount_round"),
    "round_rows": Slider("lab_amount_round_rows", 1, 8, 3, label="lab.amount_round_rows"),
    "prune": Slider("lab_amount_prune", 0.0, 0.99, 0.5, step=0.01, kind=float, label="lab.amount_prune"),
    "rank": Slider("lab_amount_rank", 0, full_rank, lambda view: max(1, full_rank(view) // 8), label="lab.amount_rank"),
    "scale": Slider("lab_amount_scale", -2.0, 2.0, 0.5, step=0.05, kind=float, label="lab.amount_scale"),
    "noise": Slider("lab_amount_noise", 0.0, 3.0, 0.5, step=0.05, kind=float, label="lab.amount_noise"),
}
HEAL_STEPS = Slider("lab_heal_steps", FEWEST_STEPS, MOST_STEPS, STEPS, step=10, label="lab.heal_steps")
TABLE = Choice("lab_table_operation", tuple(STRENGTHS), label="lab.operation", words="lab.operation_{}")
CURVE = Choice("lab_curve_operation", tuple(STRENGTHS), label="lab.operation", words="lab.operation_{}")


def _show(view: View) -> None:
    """Show the outcome under all edits, the chosen matrix, the edits, and a curve over one edit's strength."""
    if not can_answer(view):
        return
    matrix_place, operation_place, amount_place, add_place = st.columns([3, 5.4, 1.8, 1.1], vertical_alignment="bottom")
    with matrix_place:
        parameter = MATRIX.show(view)
    with operation_place:
        operation = OPERATION.show()
    with amount_place:
        amount = AMOUNTS[operation].show(view) if operation in AMOUNTS else 0
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
    changes = changes_of_weights(view)
    effect = ask_effect(view, changes, measured(view))
    count = sum(one["on"] for one in EDITS.read(view))
    show_effect(view, effect, what=t("lab.what_weights", count=count, edits=edits_in_words(view)), part="weights")
    matrix_side, list_side = st.columns([3, 2], gap="large")
    with matrix_side:
        show_matrix(view)
    with list_side:
        show_edits(view)
        show_answer(view)
    show_words(view, effect)
    among = show_set(view)
    show_on_set(view, changes, among, key="weights")
    _show_table(view, among)
    _show_curve(view, parameter, among)
    _show_healing(view)


@experiment("lab_heal", "lab.heal", icon=":material/healing:")
def _show_healing(view: View) -> None:
    """Offer a run that trains on from the damaged weights, and open it on Train."""
    if refuse_read_only():
        return
    say(t("lab.heal_said"), small=True)
    steps, changes = HEAL_STEPS.show(), changes_of_weights(view)
    if not st.button(t("lab.heal_start"), icon=":material/play_arrow:", key="lab_heal_start", disabled=not changes):
        return
    try:
        store = heal(view.bundle.name, changes, steps=steps)
    except ValueError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    follow(store.id)
    open_page("train")


@experiment("lab_table", "lab.table", icon=":material/grid_on:")
def _show_table(view: View, among: Among) -> None:
    """Show what each matrix alone and all together can bear: the answer to the text, and those to the set."""
    if among is None:
        st.caption(t("lab.set_first"))
        return
    operation = TABLE.show()
    options = options_of("lab.flips_{}", ("alone", "together", "never"))
    cover = ask_first(t("lab.table_ask"), options, name="lab_flips", about=f"{view.bundle.name} {operation}")
    with cover.picture():
        words = t("lab.table_running")
        asked = {"operation": operation, "answer": measured(view), "among": among}
        answer = awaited_or_why(weight_table, words, key="lab_table", prompt=view.prompt, **asked)
        if answer is not None:
            _draw_table(view, answer, operation)
    if answer is not None:
        cover.judge(*_flipped(view, answer.value, operation))


def _draw_table(view: View, answer: Answer[WeightTable], operation: str) -> None:
    found = answer.value
    shown = {
        t("lab.table_text"): found.probability,
        t("lab.table_set", texts=found.texts): found.accuracy,
    }
    rows = [narrow_name(view.bundle, name) for name in found.rows]
    strengths = [f"{strength:g}" for strength in found.strengths]
    words = strings("lab_table") | {"column": t(f"lab.amount_{operation}")}
    whole = {"probability": percent(found.whole_probability), "accuracy": percent(found.whole)}
    show_tables(
        "lab_table_matrix",
        shown,
        dict.fromkeys(shown, rows),
        dict.fromkeys(shown, strengths),
        answer,
        version=f"{operation}|{found.probability.tolist()!r}",
        words=words,
        said=t("lab.table_whole", **whole),
    )


def _flipped(view: View, found: WeightTable, operation: str) -> tuple[str, str]:
    """Return which edits turn the answer to the text, and in words where each does first."""
    turned = [(held, row) for row, held in zip(found.rows, found.held.tolist(), strict=True)]
    turned = [(held, row) for held, row in turned if held < len(found.strengths)]
    together = min((one for one in turned if one[1] in MATRIX_KINDS), default=None)
    alone = [one for one in turned if one[1] not in MATRIX_KINDS]

    def first(held: int, row: str) -> dict[str, str]:
        strength = f"{found.strengths[held]:g}"
        operation_word = t(f"lab.operation_{operation}")
        return {"matrix": short_name(view.bundle, row), "strength": strength, "operation": operation_word}

    said = [t("lab.turns_together", **first(*together))] if together else []
    if alone:
        matrices = sum(row not in MATRIX_KINDS for row in found.rows)
        said.append(t("lab.turns_alone", count=len(alone), matrices=matrices, **first(*min(alone))))
    elif together:
        said.append(t("lab.turns_none_alone"))
    return "alone" if alone else "together" if together else "never", joined(*said) or t("lab.turns_never")


@experiment("lab_curve", "lab.curve", icon=":material/show_chart:")
def _show_curve(view: View, parameter: str, among: Among) -> None:
    if among is None:
        st.caption(t("lab.set_first"))
        return
    operation = CURVE.show()
    say(t("lab.curve_of", matrix=short_name(view.bundle, parameter)), small=True)
    options = options_of("lab.breaks_{}", ("early", "late", "never"))
    about = f"{view.bundle.name} {parameter} {operation}"
    cover = ask_first(t("lab.curve_ask"), options, name="lab_breaks", about=about)
    asked = {"parameter": parameter, "operation": operation, "among": among}
    with cover.picture():
        words = t("lab.curve_running")
        answer = awaited_or_why(
            weight_curve, words, key="lab_curve", prompt=view.prompt, answer=measured(view), **asked
        )
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
    series = {t("lab.curve_edit"): found.text, t("lab.curve_whole"): np.full(len(found.strengths), found.text_whole)}
    up = Side(t("lab.curve_up_text"))
    hues = (PALETTE[0], PALETTE[2])  # as above
    chart = curves(found.strengths, series, across=across, up=up, at=broken, hues=hues, height=280)
    show_chart(chart, answer, key="lab_curve_text_chart", stem="lab_weight_curve_text", label=t("lab.curve_up_text"))


WEIGHTS = Part("lab", "weights", _show, sites=None)


def heal(model: str, changes: tuple[Code, ...], *, steps: int = STEPS) -> RunStore:
    """Start a run that trains a model on from its damaged weights, and return it; follow shows it.

    Args:
        model: its name, as the model's control has it.
        changes: as lab.changes.code_of writes them; those of weights count.
        steps: about how many.

    Raises:
        ValueError: the model cannot be opened or healed, the run cannot be made, or its data are somebody else's.
    """
    bundle, found = open_bundle(model), OF_RUN.fullmatch(model)
    run = find_run(found[1]) if found is not None else None
    file = None if run is None else run.spec.data.file
    if run is not None and file is not None and not may_change(run.owner):
        raise RunError(t("heal.not_yours"))
    spec = heal_spec(bundle, changes, steps=steps, run=run, name=t("heal.run_name", model=called(model)))
    data = None if run is None or file is None else run.folder / file
    return begin_run(spec, data, beginning_of(bundle, changes))
