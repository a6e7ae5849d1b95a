"""Attention: every head of every layer on the typed sentence, seen in five ways, and over many texts."""

from pages.attention.arcs import ARCS
from pages.attention.corpus import CORPUS
from pages.attention.effect import EFFECT
from pages.attention.flow import FLOW
from pages.attention.heads import HEADS
from pages.attention.tendencies import TENDENCIES_PART
from pages.kit.header import header
from pages.kit.models import READERS
from pages.room import Page

ATTENTION = Page("attention", lambda: header(kinds=READERS), (HEADS, ARCS, FLOW, TENDENCIES_PART, EFFECT, CORPUS))

if __name__ == "__main__":
    ATTENTION.show()
