"""Train: a Transformer learns while you watch, and every moment of it can be played again."""

import streamlit as st

from pages.kit.experiment import lazy_box
from pages.kit.glossary import show_prose
from pages.kit.navigation import open_page
from pages.kit.runs import find_run, follow, followed, is_live, problem_of
from pages.kit.url import keep
from pages.language import plain, section, t
from pages.room import heading
from pages.train.data import begin_with
from pages.train.endings import show_early_stopping, show_range_test
from pages.train.exports import export_run
from pages.train.film import follow_run, followed_text
from pages.train.form import show_form
from pages.train.panel import show_panel
from pages.train.refitted import show_refitted
from pages.train.results import show_results, show_try
from pages.train.runs import show_damaged, show_runs
from transformer_core.training.runs.store.run_store import RunStore


def show_run(store: RunStore) -> None:
    """Show a run: how it is doing, its film, what it came to, and what can be done with it."""
    buttons = heading(plain(store.spec.name), small=True)
    with buttons, st.container(horizontal=True, horizontal_alignment="right", key="run_buttons"):
        st.button(t("train.new"), icon=":material/add:", on_click=follow, args=(None,))
        st.button(t("train.again"), icon=":material/replay:", on_click=begin_with, args=(store.id, None))
        if st.button(t("train.compare"), icon=":material/compare_arrows:"):
            open_page("compare")
    show_panel(store)
    follow_run(store, text=followed_text(store))
    resting = not is_live(store.status())
    if resting and store.spec.training.range_test:
        show_range_test(store)
    elif resting:
        show_early_stopping(store)
        show_results(store)
        show_refitted(store)
    if not store.spec.training.range_test:
        show_try(store)
    export_run(store)


def show_beginning(problem: str) -> None:
    """Show the form, and where a link asked for a run that cannot be shown, say why."""
    heading(t("train.heading"))
    if problem:
        st.warning(problem, icon=":material/link_off:")
    show_prose(section("train", "look"))
    show_form()


run = followed()
problem = problem_of(run) if run else ""
store = find_run(run) if run and not problem else None
keep("run", store.id if store else "", "")
if store is None:
    show_beginning(problem)
else:
    show_run(store)
show_damaged()
runs = lazy_box(t("train.runs"), icon=":material/history:", key="runs_open")
if runs is not None:
    with runs:
        show_runs(store.id if store else None)
with st.expander(t("train.why"), icon=":material/school:"):
    show_prose(section("train", "why"))
