"""Masks: paint which tokens may attend to which, see a batch's masks, and train a model without a causal mask."""

from pages.kit.header import header
from pages.kit.models import READERS
from pages.masks.batch import BATCH
from pages.masks.cheat import CHEAT
from pages.masks.paint import PAINT
from pages.room import Page

MASKS = Page("masks", lambda: header(kinds=READERS), (PAINT, BATCH, CHEAT))

if __name__ == "__main__":
    MASKS.show()
