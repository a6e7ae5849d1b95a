"""Attention: every head of every layer on the typed sentence, seen in five ways."""

from pages.attention.arcs import show_arcs_part
from pages.attention.effect import show_effect
from pages.attention.flow import show_flow
from pages.attention.heads import show_heads
from pages.attention.tendencies import show_tendencies
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {
    "heads": show_heads,
    "arcs": show_arcs_part,
    "flow": show_flow,
    "tendencies": show_tendencies,
    "effect": show_effect,
}

parts_page("attention", lambda: header(kinds=READERS), PARTS)
