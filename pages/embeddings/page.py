"""Embeddings: the vectors of a sentence, the table that they come from, and which words are near each other in it."""

from pages.embeddings.counts import COUNTS
from pages.embeddings.map import MAP
from pages.embeddings.neighbours import NEIGHBOURS
from pages.embeddings.row import ROW
from pages.embeddings.sentence import SENTENCE
from pages.kit.header import header
from pages.kit.models import READERS
from pages.room import Page

SITES = ("*token_ids", "*embedding*")
EMBEDDINGS = Page("embeddings", lambda: header(kinds=READERS), (SENTENCE, ROW, NEIGHBOURS, MAP, COUNTS), sites=SITES)

if __name__ == "__main__":
    EMBEDDINGS.show()
