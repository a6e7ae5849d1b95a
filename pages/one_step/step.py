"""The page's part on one step: the gradients, one weight on its way through the optimizer, and the loss afterwards."""

import streamlit as st

from pages.kit.asking import Answer, answered, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Switch, Values, show_in_columns
from pages.kit.experiment import ask_first, experiment, fragment, options_of, say
from pages.kit.exports import code_files, offer_files
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live, show_formula, show_lines
from pages.kit.matrix import Picture, export_picture, show_picture
from pages.kit.navigation import open_page
from pages.kit.number_format import markdown_table, minus, percent, significant
from pages.kit.runs import begin_run, follow, refuse_read_only
from pages.kit.url import set_choice
from pages.kit.verdict import Number, show_number
from pages.kit.waiting import awaited_or_why
from pages.language import joined, plain, section, strings, t
from pages.link import linked
from pages.one_step.asked import (
    CELL,
    CLASS,
    MATRIX,
    RATE,
    RULE,
    TAKEN,
    TARGET,
    asked,
    can_step,
    chosen_weight,
    short,
    shortest,
    show_steps,
    show_target,
    written_rate,
)
from pages.one_step.equations import equation_of
from pages.one_step.figures import gradient_board, gradient_picture, sweep_chart
from pages.room import Part
from transformer_core.analysis.learning.followed import RulesCompared, compared_rules, followed_weight
from transformer_core.analysis.learning.gradients import LearningStep, OneGradient, learning_step, matrix_gradient
from transformer_core.analysis.learning.handed import beginning_of, spec_of
from transformer_core.analysis.learning.steps import TENFOLD, After, RateSweep, after_step, rate_sweep
from transformer_core.training.runs.errors import RunError

NUMBERS = ("one_step_before", "one_step_after", "one_step_norm", "one_step_length")
OWN_SCALES = Switch("one_step_own", False, label="one_step.own_scales")


def _picture(view: View, values: Values) -> Live:
    """Return gradients, losses, the followed weight and, once it is measured, the loss along the step.

    A hand that types gets the gradients of a new text at once, and when it asks again what the step does.
    """
    about, rate, about_one = asked(view, values), values[RATE], {"parameter": values[MATRIX]}
    shown = linked() is None or answered(matrix_gradient, **about, **about_one) is not None
    found: Answer[LearningStep] = ask_once(learning_step, **about)
    one: Answer[OneGradient] = ask_once(matrix_gradient, **about, **about_one)
    row, col = chosen_weight(one.value, values[CELL])
    pictures, numbers = _pictures(view, values, found, one, (row, col)), _numbers(found.value)
    if not shown:
        return Live(pictures=pictures, numbers=numbers, more=True)
    after: After = ask_once(after_step, **about, exponent=rate).value
    weight = ask_once(followed_weight, **about, exponent=rate, **about_one, row=row, col=col)
    return Live(
        pictures=pictures,
        numbers=numbers | _numbers_after(after),
        lines={"one_step_judged": _judged(after)},
        formulas={"one_step_weight": equation_of(weight.value)},
        drawings=_drawings(answered(rate_sweep, **about), about, rate),
    )


def _pictures(
    view: View, values: Values, found: Answer[LearningStep], one: Answer[OneGradient], cell: tuple[int, int]
) -> tuple[Picture, Picture]:
    """Return the gradient of every matrix, and that of the chosen one with its weight."""
    words, matrices, about = strings("one_step_matrix"), found.value.matrices, found.arguments
    state = f"{about['answer']!r}|{about['rule']}|{about['taken']}|{view.encoding.text}|{values[OWN_SCALES]}"
    board = gradient_board(
        matrices,
        [shortest(view, matrix.name) for matrix in matrices],
        words,
        selected=values[MATRIX],
        own=values[OWN_SCALES],
    )
    large = gradient_picture(one.value, short(view, values[MATRIX]), words, cell=cell)
    return (
        Picture("one_step_board", board, found, pins=False, version=state),
        Picture("one_step_matrix", large, one, pins=False, version=f"{state}|{values[MATRIX]}"),
    )


def _numbers(found: LearningStep) -> dict[str, Number]:
    norm = t("one_step.norm_help", count=f"{found.parameters:,}")
    return {
        "one_step_before": Number(t("one_step.before"), f"{found.losses[-1]:.4f}", t("one_step.before_help")),
        "one_step_norm": Number(t("one_step.norm"), significant(found.norm, 3), norm),
    }


def _numbers_after(after: After) -> dict[str, Number]:
    return {
        "one_step_after": Number(t("one_step.after"), _loss(after.after), t("one_step.after_help")),
        "one_step_length": Number(t("one_step.length"), significant(after.norm, 3), t("one_step.length_help")),
    }


def _loss(value: float) -> str:
    return f"{value:.4f}" if value < 1_000 else significant(value, 3)


def _judged(after: After) -> str:
    """Return in a sentence what the step did to the loss."""
    moved = minus(f"{after.after - after.before:+.4f}") if after.after < 1_000 else significant(after.after, 3)
    chances = {"before": percent(after.chance_before), "after": percent(after.chance_after)}
    return t(f"one_step.{after.outcome}", moved=moved, **chances)


def _drawings(sweep: RateSweep | None, about: dict, rate: int) -> tuple[Drawing, ...]:
    if sweep is None:
        return ()
    found = {"rates": sweep.rates, "losses": sweep.losses, "start": sweep.start}
    found |= {"best": sweep.best, "overshoots": sweep.overshoots}
    chart = sweep_chart(found, strings("one_step_sweep"), at=sweep.place(rate))
    answer = Answer(sweep, rate_sweep, about)
    label = t("one_step.sweep_label", rule=t(f"one_step.rule_{about['rule']}"))
    return (Drawing("one_step_sweep", chart, answer, "one_step_sweep", label),)


@fragment
def _show(view: View) -> None:
    """Show what is asked, what one step does, every gradient, the followed weight, and the loss along the step."""
    if not can_step(view):
        return
    target_place, rule_place, rate_place = st.columns([2, 2.6, 3], vertical_alignment="bottom", gap="medium")
    with target_place:
        show_target(view)
    with rule_place:
        RULE.show(view)
    with rate_place:
        RATE.show(view)
    live = STEP.live(view)
    board, large = live.pictures
    assert isinstance(board, Picture)
    assert isinstance(large, Picture)
    numbers_place, board_place = st.columns([1, 3], gap="large")
    with numbers_place:
        show_steps(view)
        for name in NUMBERS:
            show_number(name, live.numbers[name])
        show_lines("one_step_judged", live.lines["one_step_judged"])
        _show_taken(board.answer.value)
    with board_place:
        _show_board(view, board)
    _show_weight(large, live.formulas["one_step_weight"])
    _show_sweep(view)
    STEP.follow(view)
    _show_rules(view)
    _hand_on(view)


def _show_taken(found: LearningStep) -> None:
    wanted = " ".join(f"“{plain(one)}”" for one in found.wanted)
    say(t("one_step.wanted", wanted=wanted, count=len(found.wanted)), small=True)
    if len(found.losses) > 1:
        losses = " → ".join(_loss(float(loss)) for loss in found.losses)
        say(t("one_step.so_far", count=len(found.losses) - 1, losses=losses))


def _show_board(view: View, board: Picture) -> None:
    def choose(name: str) -> None:
        MATRIX.take(name, view)
        CELL.forget()

    st.markdown(f"**{t('one_step.gradients')}**")
    show_picture(board, on_select=choose)
    show_in_columns(view, OWN_SCALES, MATRIX, widths=(1, 2), vertical_alignment="center")
    found: LearningStep = board.answer.value
    pooled = sum(max(one.block) > 1 for one in found.matrices)
    say(t("one_step.pooled", count=len(found.matrices), pooled=pooled), small=True)
    export_picture(board)


def _show_weight(large: Picture, formula: str) -> None:
    found: OneGradient = large.answer.value
    row, col = chosen_weight(found, CELL.read())

    def follow_cell(cell: tuple[int, int] | None) -> None:
        place = None if cell is None else divmod(int(found.places[cell]), found.cols)
        set_choice(CELL.name, "" if place is None else f"{place[0]}.{place[1]}")

    st.subheader(t("one_step.weight", row=row, col=col), anchor=False)
    picture_place, formula_place = st.columns([5, 6], gap="large")
    with picture_place:
        show_picture(large, on_cell=follow_cell)
        down, across = found.block
        note = "one_step.tap_block" if down * across > 1 else "one_step.tap"
        say(t(note, rows=down, cols=across, zeros=percent(found.zeros)), small=True)
        export_picture(large)
    with formula_place:
        show_formula("one_step_weight", formula)
        show_prose(section("one_step", f"rule_{RULE.read()}"), small=True)


def _show_sweep(view: View) -> None:
    """Ask what ten times the rate would do, and show the loss at every rate."""
    st.subheader(t("one_step.along"), anchor=False)
    rate, about = RATE.read(view), asked(view)
    rates = {"rate": written_rate(rate), "more": written_rate(rate + TENFOLD)}
    options = options_of("one_step.tenfold_{}", ("lower", "higher", "above"))
    named = f"{view.name} {about['answer']} {about['rule']} {about['taken']} {rate}"
    cover = ask_first(section("one_step", "try_tenfold").format(**rates), options, name="one_step_tenfold", about=named)
    with cover.picture():
        answer = awaited_or_why(rate_sweep, t("one_step.sweeping"), key="one_step_sweep", height=340, **about)
        if answer is None:
            return
        (drawing,) = _drawings(answer.value, about, rate)
        show_drawing(drawing)
        say(_swept(answer.value, rate), small=True)
    found = answer.value
    first, more = (_loss(float(found.losses[found.place(one)])) for one in (rate, rate + TENFOLD))
    said = t("one_step.tenfold_measured", **rates, first=first, second=more, start=_loss(found.start))
    cover.judge(found.tenfold(rate), said)


def _swept(found: RateSweep, rate: int) -> str:
    """Return in words where the step is best and where it overshoots."""
    best = {"best": written_rate(int(found.exponents[found.best])), "loss": _loss(float(found.losses[found.best]))}
    said = t(f"one_step.best_{found.side(rate)}", **best, count=len(found.rates))
    if found.overshoots < 0:
        return joined(said, t("one_step.never_over", most=written_rate(int(found.exponents[-1]))))
    return joined(said, t("one_step.over_from", rate=written_rate(int(found.exponents[found.overshoots]))))


@experiment("one_step_rules_open", "one_step.rules", icon=":material/compare:")
def _show_rules(view: View) -> None:
    """Show what each rule makes of the same gradient."""
    about, rate, parameter = asked(view), RATE.read(view), MATRIX.read(view)
    one = ask_once(matrix_gradient, **about, parameter=parameter).value
    row, col = chosen_weight(one, CELL.read())
    more = {"exponent": rate, "parameter": parameter, "row": row, "col": col}
    arguments = {"prompt": about["prompt"], "answer": about["answer"], **more}
    answer = awaited_or_why(compared_rules, t("one_step.comparing"), key="one_step_compared", height=140, **arguments)
    if answer is None:
        return
    found: RulesCompared = answer.value
    head = [t("one_step.rule"), t("one_step.of_weight"), t("one_step.length"), t("one_step.after")]
    rows = [
        [t(f"one_step.rule_{rule}"), significant(step, 3, sign=True), significant(norm, 3), _loss(loss)]
        for rule, step, norm, loss in zip(
            found.rules, found.steps.tolist(), found.norms.tolist(), found.losses.tolist(), strict=True
        )
    ]
    with st.container(key="figure_rules"):
        say(markdown_table(head, rows, right=3))
        say(t("one_step.rules_note", rate=written_rate(rate)), small=True)
    offer_files(lambda: code_files(answer), key="one_step_rules", stem="one_step_rules", note=t("export.note"))


def _hand_on(view: View) -> None:
    """Offer a run that trains on from these weights with this rule and rate, and open it on Train."""
    if refuse_read_only():
        return
    about, rate = asked(view), RATE.read(view)
    said = t("one_step.hand_on", rule=t(f"one_step.rule_{about['rule']}"), rate=written_rate(rate))
    if not st.button(said, icon=":material/model_training:", key="one_step_train"):
        say(t("one_step.hand_on_note"), small=True)
        return
    try:
        name = t("one_step.run_name", model=view.bundle.name, count=len(about["taken"]))
        spec = spec_of(view.bundle, rule=about["rule"], exponent=rate, name=name)
        store = begin_run(spec, None, beginning_of(**about))
    except (RunError, ValueError) as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    follow(store.id)
    open_page("train")


STEP = Part("one_step", "step", _show, _picture, (CLASS, TARGET, RULE, RATE, TAKEN, MATRIX, CELL, OWN_SCALES))
