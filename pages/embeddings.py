"""Embeddings: the vectors a sentence looks up, the table they come from, and what lies near to what in it.

Read next: figures/embeddings.py.
"""

import streamlit as st

from pages.ui.embeddings_counts import show_counts
from pages.ui.embeddings_map import show_map
from pages.ui.embeddings_neighbours import show_analogies, show_neighbours
from pages.ui.embeddings_row import show_row
from pages.ui.embeddings_sentence import show_sentence, try_same_word
from pages.ui.glass import under_the_glass
from pages.ui.header import header
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.url import choose

PARTS = ("sentence", "row", "neighbours", "map", "counts")

view = header(kinds=READERS)
st.header(t("embeddings.heading"), anchor=False)
st.markdown(section("embeddings", "look"))
part = choose(
    t("embeddings.part"),
    {name: t(f"embeddings.part_{name}") for name in PARTS},
    name="embeddings_part",
    default=PARTS[0],
)
st.markdown(section("embeddings", f"part_{part}"))
if part == "sentence":
    show_sentence(view)
    try_same_word(view)
elif part == "row":
    show_row(view)
elif part == "neighbours":
    near_place, analogy_place = st.columns(2, gap="large")
    with near_place:
        st.subheader(t("embeddings.near_heading"), anchor=False)
        show_neighbours(view)
    with analogy_place:
        st.subheader(t("embeddings.analogy_heading"), anchor=False)
        show_analogies(view)
elif part == "map":
    show_map(view)
else:
    show_counts()
under_the_glass(view, sites=("*token_ids", "*embedding*"))
with st.expander(t("story.why"), icon=":material/school:"):
    st.markdown(section("embeddings", "why"))
