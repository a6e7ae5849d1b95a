"""A typed word on the embeddings page: found in the vocabulary, or said why not.

Read next: embeddings_sentence.py.
"""

import streamlit as st

from pages.ui.language import plain, t
from pages.ui.url import write
from transformer_core.analysis.words.vocabulary import Found, find
from transformer_core.text import Tokenizer

MOST_CHARACTERS = 60


def ask_for_word(tokenizer: Tokenizer, label: str, *, name: str, default: str) -> Found | None:
    """Show a line for a word and return its one token; None, with the reason on the page, where it has none."""
    word = write(label, name=name, default=default).strip()
    if not word:
        st.info(t("embeddings.word_empty"), icon=":material/info:")
        return None
    shown = plain(word[:MOST_CHARACTERS])
    if len(word) > MOST_CHARACTERS:
        st.info(t("embeddings.word_long", word=shown, most=MOST_CHARACTERS), icon=":material/info:")
        return None
    try:
        found = find(tokenizer, word)
    except ValueError as error:
        st.info(t("text.unreadable", error=plain(str(error))), icon=":material/info:")
        return None
    if not found.known:
        st.info(t("embeddings.word_unknown", word=shown), icon=":material/info:")
        return None
    if len(found.ids) > 1:
        pieces = " + ".join(f"**{plain(label)}**" for label in found.labels)
        message = t("embeddings.word_pieces", word=shown, count=len(found.ids), pieces=pieces)
        st.info(message, icon=":material/content_cut:")
        return None
    return found
