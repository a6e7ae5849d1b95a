"""Attention: every head of every layer on the typed sentence, in five parts."""

from pages.attention.arcs import arcs_part
from pages.attention.effect import effect_part
from pages.attention.flow import flow_part
from pages.attention.heads import heads_part
from pages.attention.tendencies import tendencies_part
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {
    "heads": heads_part,
    "arcs": arcs_part,
    "flow": flow_part,
    "tendencies": tendencies_part,
    "effect": effect_part,
}

parts_page("attention", lambda: header(kinds=READERS), PARTS)
