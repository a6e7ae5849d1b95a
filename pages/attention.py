"""Attention: every head of every layer on the typed sentence, seen in five ways.

Read next: ui/attention.py.
"""

import streamlit as st

from pages.ui.attention_arcs import show_arcs_part
from pages.ui.attention_effect import show_effect
from pages.ui.attention_flow import show_flow
from pages.ui.attention_heads import show_heads
from pages.ui.attention_tendencies import show_tendencies
from pages.ui.glass import under_the_glass
from pages.ui.header import View, header
from pages.ui.language import t
from pages.ui.model_page import model_page
from pages.ui.models import READERS
from pages.ui.url import choose

PARTS = {
    "heads": show_heads,
    "arcs": show_arcs_part,
    "flow": show_flow,
    "tendencies": show_tendencies,
    "effect": show_effect,
}


@st.fragment
def explore(view: View) -> None:
    """Show the chosen part; a click in it runs nothing else on the page."""
    parts = {name: t(f"attention.part_{name}") for name in PARTS}
    part = choose(t("attention.part"), parts, name="attention_part", default="heads")
    PARTS[part](view)
    under_the_glass(view)


model_page("attention", lambda: header(kinds=READERS), explore)
