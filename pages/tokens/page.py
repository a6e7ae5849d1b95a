"""Tokens: the sentence split by every available tokenizer, byte-pair encoding step by step, and one-hot vectors."""

from pages.kit.header import header
from pages.kit.models import READERS
from pages.room import Page
from pages.tokens.merges import MERGES
from pages.tokens.one_hot import ONE_HOT
from pages.tokens.split import SPLIT

SITES = ("*.token_ids", "*.token_embedding")
TOKENS = Page("tokens", lambda: header(kinds=READERS), (SPLIT, MERGES, ONE_HOT), sites=SITES)

if __name__ == "__main__":
    TOKENS.show()
