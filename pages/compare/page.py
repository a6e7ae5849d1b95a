"""Compare: two runs on one scrubber, what they differ in, and what that did."""

import streamlit as st

from pages.compare.pair import choose_two, show_differences, show_gap, show_measures
from pages.kit.glossary import show_prose
from pages.kit.navigation import open_page
from pages.language import section, t
from pages.room import heading
from pages.train.film import follow_run, followed_text
from pages.train.panel import show_panel
from pages.train.variant import offer_same_but, show_answer
from transformer_core.training.runs.store.run_store import RunStore


def show_two(first: RunStore, second: RunStore, text: str) -> None:
    """Show both runs and what sets them apart."""
    for place, store in zip(st.columns(2, gap="large"), (first, second), strict=True):
        with place:
            show_panel(store)
    show_answer(first, second)
    if first.spec.data.source != second.spec.data.source:
        st.warning(t("compare.other_kind"), icon=":material/difference:")
    follow_run(first, second, text=text)
    settings_place, measures_place = st.columns(2, gap="large")
    with settings_place:
        st.subheader(t("compare.differences"), anchor=False)
        show_differences(first, second)
    with measures_place:
        st.subheader(t("compare.results"), anchor=False)
        show_measures(first, second)
    show_gap(first, second)


heading(t("compare.heading"))
show_prose(section("compare", "look"))
first_place, second_place, text_place = st.columns(3)
chosen = choose_two(first_place, second_place)
if chosen is None:
    st.info(section("compare", "none"), icon=":material/info:")
    if st.button(t("compare.to_train"), type="primary", icon=":material/model_training:"):
        open_page("train")
    st.stop()
first, second = chosen
with text_place:
    text = followed_text(first)
offer_same_but(first, expanded=second is None)
if second is None:
    st.info(section("compare", "one"), icon=":material/info:")
    show_panel(first)
else:
    show_two(first, second, text)
with st.expander(t("train.why"), icon=":material/school:"):
    show_prose(section("compare", "why"))
