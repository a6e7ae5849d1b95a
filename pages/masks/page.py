"""Masks: paint which token may attend to which, see the masks of a batch, and train a model without one."""

from pages.masks.batch import show_batch
from pages.masks.cheat import show_cheating
from pages.masks.painter import show_painter
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {"paint": show_painter, "batch": show_batch, "cheat": lambda _: show_cheating()}

# The painter shows a glass of its own, which has the painted mask.
parts_page("masks", lambda: header(kinds=READERS), PARTS, sites=dict.fromkeys(PARTS))
