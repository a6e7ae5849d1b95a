"""Tokens: the sentence split by every available tokenizer, byte-pair encoding step by step, and one-hot vectors."""

from pages.tokens.merges import show_merges
from pages.tokens.one_hot import show_one_hot
from pages.tokens.split import show_split
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {"split": show_split, "merges": show_merges, "one_hot": show_one_hot}

parts_page("tokens", lambda: header(kinds=READERS), PARTS, sites=("*.token_ids", "*.token_embedding"))
