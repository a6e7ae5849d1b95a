"""Home: what the model makes of the sentence, which words did it, and the loaded model as a diagram."""

import streamlit as st

from pages.glass.box import under_the_glass
from pages.home.experiment import show_diagram, show_verdict_of
from pages.ui.because import show_counter_examples
from pages.ui.glossary import offer_glossary, tell
from pages.ui.header import View, header
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.navigation import open_page
from pages.ui.page_layout import model_page, title


def explore(view: View) -> None:
    """Show the verdict with its words, the diagram, and the ways on."""
    with title("home"):
        offer_glossary("home")
    with st.container(key="picture"):
        turning_place = show_verdict_of(view)
        tell(section("home", "look"))
        show_diagram(view)
        st.caption(t("diagram.parameters", count=f"{view.bundle.n_parameters:,}"))
        if st.button(t("home.open"), type="primary", icon=":material/grid_on:"):
            open_page("attention")
        if view.bundle.kind in READERS:
            under_the_glass(view)
        with st.expander(t("home.card"), icon=":material/description:"):
            st.markdown(view.bundle.card)
        if turning_place is not None:
            with turning_place:  # last, since it takes longest: a key waits for nothing else
                show_counter_examples(view)


model_page("home", lambda: header(kinds=(*READERS, "translation")), explore)
