"""Lab: change anything in a model, see what depends on it, and write it down."""

from pages.kit.header import header
from pages.kit.models import KINDS_OF_PAGE
from pages.lab.heads import HEADS
from pages.lab.log import LOG
from pages.lab.patch import PATCH
from pages.lab.side_by_side import SIDE
from pages.lab.steer import STEER
from pages.lab.weights import WEIGHTS
from pages.room import Page

LAB = Page("lab", lambda: header(kinds=KINDS_OF_PAGE["lab"]), (HEADS, PATCH, WEIGHTS, STEER, SIDE, LOG))

if __name__ == "__main__":
    LAB.show()
