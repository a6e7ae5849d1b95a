"""Two runs side by side: which ones, what they differ in, and what came of it."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.kit.number_format import markdown_table, minus, significant
from pages.kit.runs import LIVE, find_run, learned_words, listed_runs, problem_of, run_list
from pages.kit.url import current, forget, keep, widget_key
from pages.language import plain, t
from pages.train.settings import label_of, value_word
from transformer_core.training.runs.settings import differences
from transformer_core.training.runs.store.run_store import RunStore

SHARES = ("held_out_accuracy", "train_accuracy")
MEASURES = (*SHARES, "held_out_loss", "train_loss")
SHOWN_OF_DATA = {"source", "labels", "given"}
MOST_MORE = 15  # digits of a number
LEAST_IN_PLACES = 0.1  # a smaller number is written by its digits that count
LESS_IS_BETTER = ("held_out_loss", "train_loss", "seconds")


def kin_of(first: RunStore, runs: Sequence[RunStore]) -> RunStore | None:
    """Return the run that is most worth comparing with another: made from it, or what it was made from, or alike."""
    others = [run for run in runs if run.id != first.id]
    own = first.spec.origin.run if first.spec.origin else None
    made_from = [run for run in others if run.spec.origin is not None and run.spec.origin.run == first.id]
    parents = [run for run in others if run.id == own]
    alike = [run for run in others if run.spec.data.source == first.spec.data.source]
    return next(iter((*made_from, *parents, *alike, *others)), None)


def _choose_run(label: str, runs: Sequence[RunStore], *, name: str, default: RunStore) -> RunStore:
    names = {run.id: f"{run.spec.name}  ·  {run.id}" for run in runs}
    asked = current(name) or None
    if asked is not None and asked not in names:
        if problem := problem_of(str(asked)):
            st.toast(problem, icon=":material/link_off:", duration="long")
        forget(name)
        asked = None
    key = widget_key(name)
    st.session_state[key] = asked or default.id
    chosen = st.selectbox(label, list(names), format_func=names.__getitem__, key=key)
    keep(name, chosen, "")
    return next(run for run in runs if run.id == chosen)


def choose_two(first_place: DeltaGenerator, second_place: DeltaGenerator) -> tuple[RunStore, RunStore | None] | None:
    """Show the two lists of runs, the second with those of the same kind of model.

    Returns:
        None where there is no run; no second one where there is no other of its kind.
    """
    linked = [find_run(str(current(name))) for name in ("run", "other") if current(name)]
    runs = listed_runs()
    readable = {run.id for run in run_list().all()}
    runs += [run for run in linked if run is not None and run.id in readable - {own.id for own in runs}]
    if not runs:
        return None
    with first_place:
        first = _choose_run(t("compare.first"), runs, name="run", default=runs[0])
    others = [run for run in runs if run.id != first.id and run.spec.data.kind == first.spec.data.kind]
    if not others:
        forget("other")
        return first, None
    if current("other") in {run.id for run in runs} - {run.id for run in others}:
        forget("other")
    with second_place:
        second = _choose_run(t("compare.second"), others, name="other", default=kin_of(first, others) or others[0])
    return first, second


def show_differences(first: RunStore, second: RunStore) -> None:
    """Show the settings in which the runs differ, and only those."""
    found = differences(first.spec, second.spec)
    if not found:
        st.info(t("compare.no_difference"), icon=":material/equal:")
        return
    rows = [
        [plain(label_of(name)), *(f"**{plain(value_word(name, value))}**" for value in values)]
        for name, values in found.items()
        if name not in SHOWN_OF_DATA
    ]
    if SHOWN_OF_DATA & found.keys():
        learned = (learned_words(run.spec.data) for run in (first, second))
        rows.insert(0, [plain(label_of("source")), *(f"**{plain(words)}**" for words in learned)])
    st.markdown(markdown_table((t("compare.setting"), "A", "B"), rows))
    if len(rows) > 1:
        st.caption(t("compare.many", count=len(rows)))


def _measures(store: RunStore) -> dict[str, float]:
    frames = store.frames()
    last = dict(frames[-1].measures) if frames else {}
    found = {name: last[name] for name in MEASURES if name in last}
    status = store.status()
    return found | {"steps": float(status.step), "seconds": status.seconds}


def _number(value: float, places: int, *, sign: bool = False) -> str:
    """Write a number with so many places after the point; a small one with as many digits that count."""
    if value and round(abs(value), places) < LEAST_IN_PLACES:
        return significant(value, places, sign=sign)
    return minus(f"{value:{'+' if sign else ''}.{places}f}")


def _written(name: str, value: float, more: int) -> str:
    """Write a measure, with so many more digits than usual."""
    if name in SHARES:
        return f"{value:.{1 + more}%}"
    return f"{value:,.{more}f}" if name in ("steps", "seconds") else _number(value, 3 + more)


def _difference(name: str, moved: float, more: int) -> str:
    """Write a difference of two measures, of shares in points; one that would round to 0 by its first digit."""
    if name in MEASURES and name not in SHARES:
        return _number(moved, 3, sign=True)
    moved, places = (100 * moved, 1 + more) if name in SHARES else (moved, more)
    written = minus(f"{moved:+,.{places}f}")
    return written if any(digit in written for digit in "123456789") else significant(moved, 1, sign=True)


def measure_rows(first: Mapping[str, float], second: Mapping[str, float]) -> list[list[str]]:
    """Return the rows of the table of measures: its name, both values with the better one bold, and the difference.

    Numbers that differ are written with as many digits as it takes to see that; "=" stands for equal ones alone.
    """
    rows = []
    for name in (*MEASURES, "seconds", "steps"):
        if name not in first or name not in second:
            continue
        values = (first[name], second[name])
        differ = values[0] != values[1]
        more, texts = 0, [_written(name, value, 0) for value in values]
        while differ and texts[0] == texts[1] and more < MOST_MORE:
            more += 1
            texts = [_written(name, value, more) for value in values]
        difference = _difference(name, values[1] - values[0], more) if differ else "="
        if name != "steps" and differ:
            better = (min if name in LESS_IS_BETTER else max)(range(2), key=values.__getitem__)
            texts[better] = f"**{texts[better]}**"
        rows.append([t(f"measure.{name}"), *texts, difference])
    return rows


def show_measures(first: RunStore, second: RunStore) -> None:
    """Show the last measures of both runs, the better of each bold; while one is under way, there is nothing to say."""
    if any(store.status().state in LIVE for store in (first, second)):
        st.info(t("compare.wait"), icon=":material/hourglass_top:")
        return
    rows = measure_rows(_measures(first), _measures(second))
    st.markdown(markdown_table((t("compare.measure"), "A", "B", "B − A"), rows))
    st.caption(t("compare.points"))


def gap_by_step(first: RunStore, second: RunStore) -> pd.DataFrame:
    """Return by how many points of held-out accuracy the second run leads, at the first's frames that both reach."""
    curves = []
    for store in (first, second):
        frames = [frame for frame in store.frames() if "held_out_accuracy" in frame.measures]
        curves.append([(frame.step, 100 * frame.measures["held_out_accuracy"]) for frame in frames])
    if not all(curves):
        return pd.DataFrame({"step": [], "gap": []})
    (steps, values), (other_steps, others) = (np.array(curve).T for curve in curves)
    common = steps <= other_steps[-1]
    gap = np.interp(steps[common], other_steps, others) - values[common]
    return pd.DataFrame({"step": steps[common].astype(int), "gap": gap})


def show_gap(first: RunStore, second: RunStore) -> None:
    """Show by how much the second run is ahead of the first, step by step."""
    data = gap_by_step(first, second)
    if len(data) < 2:
        return
    base = alt.Chart(data).encode(
        x=alt.X("step:Q", title=t("compare.step"), axis=alt.Axis(tickCount=8, grid=False)),
        y=alt.Y("gap:Q", title=t("compare.gap")),
        tooltip=[
            alt.Tooltip("step:Q", title=t("compare.step")),
            alt.Tooltip("gap:Q", title=t("compare.gap"), format="+.1f"),
        ],
    )
    zero = alt.Chart(pd.DataFrame({"gap": [0.0]})).mark_rule(strokeDash=[4, 4], opacity=0.6).encode(y=alt.Y("gap:Q"))
    chart = zero + base.mark_area(opacity=0.18) + base.mark_line(point=True)
    st.altair_chart(chart.properties(height=260), key="gap", alt=t("compare.gap"))
