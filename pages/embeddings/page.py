"""Embeddings: the vectors of a sentence, the table that they come from, and which words are near each other in it."""

import streamlit as st

from pages.embeddings.counts import show_counts
from pages.embeddings.dot import try_dot
from pages.embeddings.map import show_map
from pages.embeddings.neighbours import show_analogies, show_neighbours
from pages.embeddings.row import show_row
from pages.embeddings.sentence import show_sentence, try_same_word
from pages.ui.header import View, header
from pages.ui.language import t
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page


def sentence_part(view: View) -> None:
    """Show the sentence's vectors, and one word at two places."""
    show_sentence(view)
    try_same_word(view)
    try_dot(view)


def neighbours_part(view: View) -> None:
    """Show the nearest words of a word, and analogies."""
    near_place, analogy_place = st.columns(2, gap="large")
    with near_place:
        st.subheader(t("embeddings.near_heading"), anchor=False)
        show_neighbours(view)
    with analogy_place:
        st.subheader(t("embeddings.analogy_heading"), anchor=False)
        show_analogies(view)


PARTS = {
    "sentence": sentence_part,
    "row": show_row,
    "neighbours": neighbours_part,
    "map": show_map,
    "counts": lambda _: show_counts(),
}

parts_page("embeddings", lambda: header(kinds=READERS), PARTS, sites=("*token_ids", "*embedding*"))
