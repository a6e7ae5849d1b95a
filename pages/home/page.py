"""Home: what the model concludes from the sentence, which words did it, and the loaded model as a diagram."""

import streamlit as st

from pages.glass.box import under_the_glass
from pages.hall.lectures import find_lecture
from pages.hall.scene import TOUR, under_question
from pages.hall.tour import FIRST_TOUR, begin_tour
from pages.home.diagram import show_diagram
from pages.home.size import size_in_words
from pages.home.verdict import VERDICT
from pages.kit.explanation import show_counter_examples
from pages.kit.glossary import offer_glossary, show_prose
from pages.kit.header import View, header
from pages.kit.models import READERS, show_card_text
from pages.kit.navigation import open_page
from pages.kit.url import current
from pages.language import language, section, t
from pages.room import model_page, title


def explore(view: View) -> None:
    """Show the verdict with its words, the diagram, and the links to other pages."""
    with title("home"):
        offer_glossary("home")
        lecture = None if current(TOUR) else find_lecture(FIRST_TOUR, language())
        if lecture is not None:
            said = t("tour.begin", count=len(lecture.scenes))
            if st.button(said, type="primary", icon=":material/tour:", key="tour_begin"):
                begin_tour(FIRST_TOUR)
    with st.container(key="picture"):
        with under_question("verdict"):
            turning_place = VERDICT.show(view)
        show_prose(section("home", "look"))
        with under_question("diagram"):
            show_diagram(view)
        st.caption(size_in_words(view.bundle.n_parameters))
        if st.button(t("home.open"), icon=":material/grid_on:"):
            open_page("attention")
        if view.bundle.kind in READERS:
            under_the_glass(view)
        with st.expander(t("home.card"), icon=":material/description:"):
            show_card_text(view.bundle)
        if turning_place is not None:
            # computed last, because it takes longest and nothing else waits for it
            with turning_place, under_question("words"):
                show_counter_examples(view)


def look() -> View:
    """Show the header."""
    st.session_state.part = VERDICT.name
    return header(kinds=(*READERS, "translation"))


model_page("home", look, explore)
