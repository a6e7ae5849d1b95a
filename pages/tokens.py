"""Tokens: the sentence cut by every tokenizer at hand, byte-pair encoding learned step by step, and one-hot vectors.

Read next: ui/tokens_split.py.
"""

from pages.ui.header import header
from pages.ui.model_page import parts_page
from pages.ui.models import READERS
from pages.ui.tokens_merges import show_merges
from pages.ui.tokens_one_hot import show_one_hot
from pages.ui.tokens_split import show_split

PARTS = {"split": show_split, "merges": show_merges, "one_hot": show_one_hot}

parts_page("tokens", lambda: header(kinds=READERS), PARTS, sites=("*.token_ids", "*.token_embedding"))
