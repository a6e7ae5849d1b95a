"""What stands above a page of runs: its heading, language and link; and the text that is followed through a run.

Read next: runs.py.
"""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.glossary import offer_glossary
from pages.ui.header import DEFAULT_TEXT
from pages.ui.language import t
from pages.ui.share import language_and_share
from pages.ui.url import write
from transformer_core.training.runs.store.run_store import RunStore

LABELS = {
    "classifier": "train.probe",
    "translation": "train.probe_letters",
    "gpt": "train.probe_begin",
    "bert": "train.probe_hidden",
}


def heading(title: str, *, small: bool = False) -> DeltaGenerator:
    """Show a page's heading and the choice of language, and return the place between them.

    Args:
        title: Markdown.
        small: for what a page shows rather than for the page.
    """
    title_place, place, language_place = st.columns([3.4, 3.6, 2], vertical_alignment="center")
    with language_place:
        language_and_share()
    with title_place, st.container(horizontal=True, vertical_alignment="center"):
        (st.subheader if small else st.header)(title, anchor=False, width="content")
        offer_glossary(st.session_state.page)
    return place


def probe(store: RunStore) -> str:
    """Let a person type the text that is followed through a run, and return it.

    A classifier's is the sentence of all pages; the other kinds begin with a text of their own data.
    """
    kind = store.spec.data.kind
    if kind == "classifier":
        return write(t(LABELS[kind]), name="text", default=DEFAULT_TEXT)
    return write(t(LABELS[kind]), name=f"probe_{kind}", default=store.facts().get("prompt", ""))
