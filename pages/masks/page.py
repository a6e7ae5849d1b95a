"""Masks: paint which tokens may attend to which, see a batch's masks, and train a model without a causal mask."""

from pages.masks.batch import batch_part
from pages.masks.cheat import cheat_part
from pages.masks.paint import paint_part
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {"paint": paint_part, "batch": batch_part, "cheat": lambda _: cheat_part()}

# No glass under the parts: the painter shows its own, with the painted mask in it.
parts_page("masks", lambda: header(kinds=READERS), PARTS, sites=dict.fromkeys(PARTS))
