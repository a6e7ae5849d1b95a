"""Home: what the model concludes from the sentence, which words did it, and the loaded model as a diagram."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.glass.box import under_the_glass
from pages.home.diagram import show_diagram
from pages.ui.because import show_because, show_counter_examples, show_weak_sides
from pages.ui.card import show_card_text
from pages.ui.glossary import offer_glossary, tell
from pages.ui.header import View, header
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.navigation import open_page
from pages.ui.page_layout import model_page, title
from pages.ui.tour import FIRST_TOUR, TOUR, begin_tour
from pages.ui.url import current
from pages.ui.verdict import concludes, show_outcome
from transformer_core.analysis.outcome import read


def explore(view: View) -> None:
    """Show the verdict with its words, the diagram, and the links to other pages."""
    with title("home"):
        offer_glossary("home")
        if not current(TOUR):
            begins = st.button(t("tour.begin"), type="primary", icon=":material/tour:", key="tour_begin")
            if begins:
                begin_tour(FIRST_TOUR)
    with st.container(key="picture"):
        turning_place = show_verdict_of(view)
        tell(section("home", "look"))
        show_diagram(view)
        st.caption(t("diagram.parameters", count=f"{view.bundle.n_parameters:,}"))
        if st.button(t("home.open"), icon=":material/grid_on:"):
            open_page("attention")
        if view.bundle.kind in READERS:
            under_the_glass(view)
        with st.expander(t("home.card"), icon=":material/description:"):
            show_card_text(view.bundle)
        if turning_place is not None:
            with turning_place:  # computed last, because it takes longest and nothing else waits for it
                show_counter_examples(view)


def show_verdict_of(view: View) -> DeltaGenerator | None:
    """Show the verdict and the words that led to it; return the place for the words that would change it."""
    if view.bundle.kind == "translation":
        if st.button(t("home.translate"), icon=":material/translate:"):
            open_page("translation")
        return None
    if not concludes(view):
        return None
    words_place, others_place = st.columns([3, 2], gap="large")
    with words_place:
        show_outcome(view, read(view.bundle, view.encoding, sites=()).probabilities)
        show_because(view)
        show_weak_sides(view)
    return others_place.container(key="counter_examples", gap=None)


model_page("home", lambda: header(kinds=(*READERS, "translation")), explore)
