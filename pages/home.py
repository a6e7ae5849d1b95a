"""Home: the loaded model as a diagram with the shapes of the typed sentence, and its verdict; no click needed.

Read next: attention.py.
"""

import streamlit as st

from pages.ui.architecture import show_architecture
from pages.ui.glass import under_the_glass
from pages.ui.header import header
from pages.ui.home import word_experiment
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.navigation import open_page
from pages.ui.verdict import concludes, show_outcome
from transformer_core.analysis.reading import read

PAGE_OF_PART = {
    "tokens": "tokens",
    "embedding": "embeddings",
    "positions": "positions",
    "attention": "attention",
    "feed_forward": "feed_forward",
    "norm": "norm",
}

view = header(kinds=(*READERS, "translation"))
st.header(t("home.heading"), anchor=False)
st.markdown(section("home", "look"))
chosen = show_architecture(view, {part: t(f"nav.{page}") for part, page in PAGE_OF_PART.items()})
if chosen in PAGE_OF_PART:
    open_page(PAGE_OF_PART[chosen])
st.subheader(t("home.verdict"), anchor=False)
if view.bundle.kind == "translation":
    if st.button(t("home.translate"), icon=":material/translate:"):
        open_page("translation")
elif concludes(view):
    show_outcome(view, read(view.bundle, view.encoding, sites=()).probabilities)
st.caption(t("diagram.parameters", count=f"{view.bundle.n_parameters:,}"))
if st.button(t("home.open"), type="primary", icon=":material/grid_on:"):
    open_page("attention")
if view.bundle.kind in READERS:
    word_experiment(view)
    under_the_glass(view)
with st.expander(t("story.why"), icon=":material/school:"):
    st.markdown(section("home", "why"))
with st.expander(t("home.card"), icon=":material/description:"):
    st.markdown(view.bundle.card)
