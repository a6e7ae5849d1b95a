"""Attention: every head of every layer on the typed sentence, seen in five ways.

Read next: ui/attention.py.
"""

from pages.ui.attention_arcs import show_arcs_part
from pages.ui.attention_effect import show_effect
from pages.ui.attention_flow import show_flow
from pages.ui.attention_heads import show_heads
from pages.ui.attention_tendencies import show_tendencies
from pages.ui.header import header
from pages.ui.model_page import parts_page
from pages.ui.models import READERS

PARTS = {
    "heads": show_heads,
    "arcs": show_arcs_part,
    "flow": show_flow,
    "tendencies": show_tendencies,
    "effect": show_effect,
}

parts_page("attention", lambda: header(kinds=READERS), PARTS)
