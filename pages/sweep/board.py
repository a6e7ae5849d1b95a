"""The board of a sweep: its runs are started, watched, compared and taken home; a prepared question is judged by it."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from pages.figures.seeds import seeds_chart
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice
from pages.kit.experiment import Cover, ask_first, covered, options_of, say
from pages.kit.exports import offer_files, one_export, rows_csv
from pages.kit.navigation import open_page
from pages.kit.number_format import minus
from pages.kit.refusals import in_own_words
from pages.kit.runs import LIVE, begin_run, in_words, is_live, refuse_read_only, resume_run, run_list
from pages.kit.url import forget, keep
from pages.kit.waiting import watch
from pages.language import joined, plain, section, t
from pages.serving.owners import may_change
from pages.sweep.coordinates import show_coordinates
from pages.sweep.figures import bands_chart, grid_chart
from pages.sweep.plan import BASE, ONE, SEEDS, SHORT, TWO, Plan, base_of, cell_word, settings_of, values_name
from pages.train.form import estimate
from pages.train.settings import label_of, value_word
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import most_runs
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.sweep import Outcome, Sweep, outcome

SECONDS_BETWEEN_LOOKS = 2.0
BETTER = ("better", "within", "worse")
NEEDED = ("2", "5", "10", "never")  # at most so many seeds
FURTHER = ("first", "second", "within")
Found = list[list[RunStore | None]]


@dataclass(frozen=True)
class Question:
    """A prepared question.

    Args:
        values, seeds: the sweep of the base SHORT that answers it.
        options: that can be foretold.
    """

    values: Mapping[str, tuple[Any, ...]]
    seeds: int
    options: tuple[str, ...] = BETTER


QUESTIONS = {
    "rate_or_depth": Question({"learning_rate": (3e-4, 3e-3, 3e-2), "n_layers": (1, 2, 4)}, 3, FURTHER),
    "norm_order": Question({"norm_order": ("post", "pre")}, 10, NEEDED),
    "heads": Question({"n_heads": (4, 1)}, 5),
    "activation": Question({"activation": ("relu", "gelu")}, 5),
    "residual": Question({"residual": (False, True)}, 3),
    "positions": Question({"positions": ("none", "rotary")}, 5),
}


def asked_by(sweep: Sweep) -> str | None:
    """Return the prepared question that a sweep answers, if any."""
    for name, question in QUESTIONS.items():
        if dict(sweep.values) == dict(question.values) and len(sweep.seeds) >= question.seeds:
            return name if sweep.base == base_of(SHORT)[0] else None
    return None


def choose_question() -> None:
    """Offer the prepared questions; one that is chosen sets all controls."""
    box = st.expander(t("sweep.questions"), icon=":material/quiz:", expanded=True, key="sweep_questions")
    with box, st.container(horizontal=True):
        for name in QUESTIONS:
            st.button(t(f"sweep.question_{name}"), key=f"question {name}", on_click=_take, args=(name,))


def _take(name: str) -> None:
    question = QUESTIONS[name]
    BASE.take(SHORT)
    SEEDS.take(question.seeds)
    offered, settings = settings_of(base_of(SHORT)[0]), list(question.values)
    for place, control in enumerate((ONE, TWO)):
        forget(control, values_name(control))
        if place < len(settings):
            setting = settings[place]
            values = ",".join(offered[setting].write(value) for value in question.values[setting])
            st.session_state[f"of {values_name(control)}"] = setting
            keep(control, setting, "")
            keep(values_name(control), values, "")


def find_runs(sweep: Sweep) -> Found:
    """Return the runs that there are: this visitor's, and where nobody's own data are learned, anybody's.

    Of other people's runs the results are shown, which are those of anybody who asks for the same, and no way to them.
    """
    runs = run_list().all()
    return sweep.find(run for run in runs if sweep.base.data.file is None or may_change(run.owner))


def _start(plan: Plan, found: Found) -> None:
    """Start what is missing, and go on with what was stopped."""
    sweep = plan.sweep
    assert sweep is not None
    for cell, row in zip(sweep.cells, found, strict=True):
        for seed, store in zip(sweep.seeds, row, strict=True):
            try:
                if store is None:
                    begin_run(sweep.spec(cell, seed), plan.data)
                elif store.status().state in ("stopped", "interrupted") and may_change(store.owner):
                    resume_run(store)
            except RunError as error:
                st.session_state.sweep_problem = in_own_words(str(error))
                return


def _own_live(found: Found) -> list[RunStore]:
    """Return the runs under way that this visitor may stop."""
    stores = (one for row in found for one in row if one is not None and may_change(one.owner))
    return [store for store in stores if store.status().state in LIVE]


def _stop(found: Found) -> None:
    for store in _own_live(found):
        with suppress(RunError):  # it ended meanwhile
            runner().ask(store, "stop")


def _counts(found: Found) -> dict[str, int]:
    states = [one.status() if one else None for row in found for one in row]
    return {
        "all": len(states),
        "finished": sum(one is not None and one.state == "finished" for one in states),
        "live": sum(one is not None and is_live(one) for one in states),
        "own": len(_own_live(found)),
        "failed": sum(one is not None and one.state == "failed" for one in states),
        "open": sum(one is None or one.state in ("stopped", "interrupted") for one in states),
    }


def show_start(plan: Plan, found: Found) -> None:
    """Show how many runs the sweep is, how long they take, and the buttons that start and stop them."""
    with st.container(border=True, key="sweep_start"):
        if plan.sweep is None:
            st.warning(plain(in_own_words(plan.problem)), icon=":material/block:")
            return
        counts = _counts(found)
        st.metric(t("sweep.runs"), f"{counts['all']:,}", help=t("sweep.found_again"))
        if refuse_read_only():
            return
        if counts["open"]:
            _show_estimate(plan, counts["open"])
            word = "sweep.start" if counts["open"] == counts["all"] else "sweep.go_on"
            st.button(
                t(word, count=counts["open"]),
                type="primary",
                icon=":material/play_arrow:",
                width="stretch",
                key="sweep_go",
                on_click=_start,
                args=(plan, found),
            )
        if counts["own"]:
            st.button(
                t("sweep.stop", count=counts["own"]),
                icon=":material/stop:",
                width="stretch",
                key="sweep_stop",
                on_click=_stop,
                args=(found,),
            )
        if problem := st.session_state.pop("sweep_problem", None):
            st.warning(t("sweep.not_all", error=plain(problem)), icon=":material/hourglass_top:")


def _show_estimate(plan: Plan, count: int) -> None:
    assert plan.sweep is not None
    spec = plan.sweep.base

    def show() -> None:
        known = estimate(spec, plan.data, plan.data_name)
        if not known.done():
            st.caption(t("train.measuring"))
        elif known.exception() is not None:
            st.caption(t("train.no_estimate", error=plain(in_own_words(str(known.exception())))))
        else:
            at_once = min(most_runs(), count)
            one, rounds = known.result().seconds, -(-count // at_once)
            st.caption(t("sweep.takes", time=in_words(one * rounds), one=in_words(one), at_once=at_once))

    watch(lambda: estimate(spec, plan.data, plan.data_name).done(), show, key="sweep_estimate")


def show_board(sweep: Sweep, found: Found) -> None:
    """Show what the runs have come to; while they are under way it looks again by itself."""
    watch(
        lambda: not _counts(found)["live"],
        lambda: _show(sweep, found),
        key="sweep_board",
        seconds=SECONDS_BETWEEN_LOOKS,
    )


@one_export
def _show(sweep: Sweep, found: Found) -> None:
    st.caption(t("sweep.state", **_counts(found)))
    own = [["" if one is None or not may_change(one.owner) else one.id for one in row] for row in found]
    so_far = replace(outcome(sweep, found), runs=own)
    answer = Answer(so_far, outcome, {}, repeatable=False)
    name = asked_by(sweep)
    if name is None:
        _show_outcome(sweep, so_far, answer)
    else:
        question = QUESTIONS[name]
        cover = ask_first(
            section("sweep", f"question_{name}"), options_of("sweep.guess_{}", question.options), name=f"sweep_{name}"
        )
        if so_far.ended:
            _judge(name, sweep, so_far, cover)
        with cover.picture():
            _show_outcome(sweep, so_far, answer)
    _offer(sweep, so_far)


def _judge(name: str, sweep: Sweep, found: Outcome, cover: Cover) -> None:
    """Say what came true of a prepared question."""
    options, seeds = QUESTIONS[name].options, len(sweep.seeds)
    if options == FURTHER:
        first, second = (label_of(setting) for setting in sweep.values)
        moved = found.moved((3, 3)).mean(1)
        sizes = {"moved_first": f"{100 * moved[0]:.1f}", "moved_second": f"{100 * moved[1]:.1f}"}
        sentence = t("sweep.moved", first=first, second=second, seeds=seeds, **sizes)
        cover.judge(found.further((3, 3)), sentence)
    elif options == NEEDED:
        needed = found.seeds_needed()
        option = "never" if needed is None else next(one for one in NEEDED if needed <= int(one))
        sentence = difference_words(sweep, found, 0, 1)
        cover.judge(
            option, joined(t("sweep.needed", count=needed) if needed else t("sweep.never", count=seeds), sentence)
        )
    else:
        cover.judge(found.verdict(), difference_words(sweep, found, 0, 1))


def _number(found: Outcome, value: float, *, sign: bool = False) -> str:
    """Write a value of the measure: a share in per cent, a loss in nats; a difference of shares in points."""
    if found.measure.endswith("accuracy"):
        return minus(f"{100 * value:+.1f}") if sign else f"{value:.1%}"
    return minus(f"{value:+.3f}") if sign else f"{value:.3f}"


def difference_words(sweep: Sweep, found: Outcome, first: int, second: int) -> str:
    """Return in words by how much the second combination is above the first, with its interval, and what follows."""
    moved, low, high = found.difference(first, second)
    if moved != moved:
        return t("sweep.no_difference")
    count = int((~pd.isna(found.final[second] - found.final[first])).sum())
    names = {"first": plain(cell_word(sweep.cells[first])), "second": plain(cell_word(sweep.cells[second]))}
    unit = "points" if found.measure.endswith("accuracy") else "nats"
    if low != low:
        return t(f"sweep.one_seed_{unit}", moved=_number(found, moved, sign=True), **names)
    ends = {"low": _number(found, low, sign=True), "high": _number(found, high, sign=True)}
    sentence = t(f"sweep.difference_{unit}", moved=_number(found, moved, sign=True), count=count, **names, **ends)
    return joined(sentence, t(f"sweep.verdict_{found.verdict(first, second)}", **names))


def _show_outcome(sweep: Sweep, found: Outcome, answer: Answer[Outcome]) -> None:
    """Show the figures, the table, and two combinations compared."""
    names = [cell_word(cell) for cell in sweep.cells]
    measure, share = t(f"measure.{found.measure}"), found.measure.endswith("accuracy")
    form = ".1%" if share else ".3f"
    words = {"value": measure, "seed": t("sweep.seed"), "mean": t("sweep.mean"), "interval": t("sweep.interval")}
    spreads = [found.spread(cell) for cell in range(len(names))]
    settings = list(sweep.values)
    if len(settings) == 2:
        rows, columns = ([value_word(name, value) for value in sweep.values[name]] for name in settings)
        shape = (len(rows), len(columns))
        titles = {"rows": label_of(settings[0]), "columns": label_of(settings[1])}
        chart = grid_chart(
            rows,
            columns,
            _array([mean for mean, _, _ in spreads]).reshape(shape),
            (~pd.isna(found.final)).sum(1).reshape(shape),
            titles | {"value": measure, "seeds": t("sweep.seeds")},
            format=form,
        )
        show_chart(chart, answer, key="sweep_grid", label=t("sweep.grid_label", measure=measure))
    bounds = _array([ends for _, *ends in spreads])
    dots = seeds_chart(names, found.final, words, bounds=bounds, format=form)
    show_chart(dots, answer, key="sweep_dots", label=t("sweep.dots_label", measure=measure))
    first, second = [value_word(settings[0], cell[settings[0]]) for cell in sweep.cells], [""] * len(names)
    titles = {"first": label_of(settings[0]), "second": "", "step": t("compare.step"), "value": measure}
    if len(settings) == 2:
        second = [value_word(settings[1], cell[settings[1]]) for cell in sweep.cells]
        titles["second"] = label_of(settings[1])
    bands = bands_chart(found.curves, first, second, titles, format=form)
    show_chart(bands, answer, key="sweep_bands", label=t("sweep.bands_label", measure=measure))
    if covered():
        return  # numbers and sentences would answer it
    show_coordinates(sweep, found, answer, names)
    _show_table(sweep, found, names, spreads)
    _show_pair(sweep, found, names)


def _array(values: Iterable[Any]) -> Any:
    return pd.DataFrame(list(values)).to_numpy(dtype=float)


def _show_table(sweep: Sweep, found: Outcome, names: list[str], spreads: list[tuple[float, float, float]]) -> None:
    """Show a row for each combination; a click on a column sorts them."""
    scale = 100 if found.measure.endswith("accuracy") else 1
    done = (~pd.isna(found.final)).sum(1)
    table = pd.DataFrame(
        {
            t("sweep.cell"): names,
            t("sweep.mean"): [scale * mean for mean, _, _ in spreads],
            t("sweep.low"): [scale * low for _, low, _ in spreads],
            t("sweep.high"): [scale * high for _, _, high in spreads],
            t("sweep.best"): scale * pd.DataFrame(found.best).mean(axis=1),
            t("sweep.took"): pd.DataFrame(found.seconds).mean(axis=1),
            t("sweep.done"): [t("sweep.of", count=count, all=len(sweep.seeds)) for count in done],
        }
    )
    form = "%.1f %%" if scale == 100 else "%.3f"
    column = st.column_config.NumberColumn
    numbers = {t(f"sweep.{name}"): column(format=form) for name in ("mean", "low", "high", "best")}
    numbers[t("sweep.took")] = column(format="%.0f s")
    st.dataframe(table, hide_index=True, width="stretch", column_config=numbers, key="sweep_table")
    say(t("sweep.table_note", measure=t(f"measure.{found.measure}"), seeds=len(sweep.seeds)), small=True)


def _show_pair(sweep: Sweep, found: Outcome, names: list[str]) -> None:
    """Compare two combinations, and open their runs."""
    labels = {str(cell): name for cell, name in enumerate(names)}
    columns = st.columns(2, gap="large")
    with columns[0]:
        first = Choice("sweep_first", labels, label="sweep.first", kind=int, form="list").show()
    with columns[1]:
        second = Choice(
            "sweep_second", labels, label="sweep.second", kind=int, form="list", default=min(1, len(names) - 1)
        ).show()
    if first != second:
        say(difference_words(sweep, found, first, second))
    with st.container(horizontal=True):
        for seed, run in zip(sweep.seeds, found.runs[first], strict=True):
            if run and st.button(t("sweep.open_run", seed=seed), key=f"open {run}", icon=":material/movie:"):
                keep("run", run, "")
                open_page("train")
        same_seed = (pair for pair in zip(found.runs[first], found.runs[second], strict=True) if all(pair))
        both = None if first == second else next(same_seed, None)
        if both and st.button(t("sweep.compare"), icon=":material/compare_arrows:", key="sweep_compare"):
            keep("run", both[0], "")
            keep("other", both[1], "")
            open_page("compare")


def rows_of(sweep: Sweep, found: Outcome) -> list[dict[str, Any]]:
    """Return one row a run: its settings, seed, state and what it came to."""

    def number(value: float) -> float | None:
        return float(value) if value == value else None

    return [
        {
            **cell,
            "seed": seed,
            "run": found.runs[place][column],
            "state": found.states[place][column],
            f"final_{found.measure}": number(found.final[place, column]),
            f"best_{found.measure}": number(found.best[place, column]),
            "seconds": number(found.seconds[place, column]),
        }
        for place, cell in enumerate(sweep.cells)
        for column, seed in enumerate(sweep.seeds)
    ]


SCRIPT = '''"""A sweep of Vitrine: it starts the runs that are missing, waits for them, and prints what came of them."""

import json
import time

from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.store.records import ENDED
from transformer_core.training.runs.sweep import Sweep, outcome
from transformer_core.training.spec import RunSpec

ASKED = json.loads(r"""{asked}""")

if __name__ == "__main__":
    values = {{name: tuple(some) for name, some in ASKED["values"].items()}}
    sweep = Sweep(RunSpec.from_json(json.dumps(ASKED["base"])), values, tuple(ASKED["seeds"]))
    runs = RunList()
    for cell, row in zip(sweep.cells, sweep.find(runs.all())):
        for seed, store in zip(sweep.seeds, row):
            if store is None:
                store = runs.create(sweep.spec(cell, seed))
                runner().start(store)
                while store.status().state not in ENDED:
                    time.sleep(1)
    found = outcome(sweep, sweep.find(runs.all()))
    for cell, final, best in zip(sweep.cells, found.final, found.best):
        print(cell, final.tolist(), best.tolist())
'''


def _offer(sweep: Sweep, found: Outcome) -> None:
    """Offer the sweep as files."""

    def files() -> dict[str, Callable[[], str | bytes]]:
        rows = rows_of(sweep, found)
        made: dict[str, Callable[[], str | bytes]] = {
            "csv": lambda: rows_csv(rows),
            "json": lambda: json.dumps({"sweep": json.loads(sweep.to_json()), "runs": rows}, ensure_ascii=False),
        }
        if sweep.base.data.file is None:
            made["py"] = lambda: SCRIPT.format(asked=sweep.to_json())
        return made

    offer_files(files, key="sweep_files", stem="sweep", note=t("sweep.files_note"))
