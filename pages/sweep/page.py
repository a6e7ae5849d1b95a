"""Sweep: the same run with other settings and several seeds, since a single run answers no question."""

import streamlit as st

from pages.kit.glossary import show_prose
from pages.language import section, t
from pages.room import heading
from pages.sweep.board import choose_question, find_runs, show_board, show_start
from pages.sweep.plan import choose_plan

heading(t("sweep.heading"))
show_prose(section("sweep", "look"))
choose_question()
plan_place, start_place = st.columns([2.6, 1], gap="large")
with plan_place:
    plan = choose_plan()
found = find_runs(plan.sweep) if plan.sweep else []
with start_place:
    show_start(plan, found)
if plan.sweep is not None:
    if any(one is not None for row in found for one in row):
        show_board(plan.sweep, found)
    else:
        st.info(section("sweep", "none"), icon=":material/info:")
with st.expander(t("train.why"), icon=":material/school:"):
    show_prose(section("sweep", "why"))
