"""Tokens: the sentence split by every tokenizer, byte-pair encoding step by step, one-hot vectors, and a chat."""

from pages.kit.header import header
from pages.kit.models import READERS
from pages.room import Page
from pages.tokens.chat import CHAT
from pages.tokens.merges import MERGES
from pages.tokens.one_hot import ONE_HOT
from pages.tokens.split import SPLIT

SITES = ("*.token_ids", "*.token_embedding")
TOKENS = Page("tokens", lambda: header(kinds=READERS), (SPLIT, MERGES, ONE_HOT, CHAT), sites=SITES)

if __name__ == "__main__":
    TOKENS.show()
