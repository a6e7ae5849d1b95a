"""Lab: change anything in a model, see what depends on it, and write it down."""

from pages.lab.heads import show_heads_off
from pages.lab.log import show_log
from pages.lab.outcome import KINDS
from pages.lab.patch import show_patch
from pages.lab.side import show_side
from pages.lab.steer import show_steer
from pages.lab.weights import show_weights
from pages.ui.header import header
from pages.ui.page_layout import parts_page

PARTS = {
    "heads": show_heads_off,
    "patch": show_patch,
    "weights": show_weights,
    "steer": show_steer,
    "side": show_side,
    "log": show_log,
}

parts_page("lab", lambda: header(kinds=KINDS), PARTS, sites=dict.fromkeys(PARTS))
