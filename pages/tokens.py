"""Tokens: the sentence cut by every tokenizer at hand, byte-pair encoding learned step by step, and one-hot vectors.

Read next: ui/tokens_split.py.
"""

import streamlit as st

from pages.ui.glass import under_the_glass
from pages.ui.header import header
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.tokens_merges import show_merges
from pages.ui.tokens_one_hot import show_one_hot
from pages.ui.tokens_split import show_split
from pages.ui.url import choose

PARTS = {"split": show_split, "merges": show_merges, "one_hot": show_one_hot}

view = header(kinds=READERS)
st.header(t("tokens.heading"), anchor=False)
part = choose(
    t("tokens.part"),
    {name: t(f"tokens.part_{name}") for name in PARTS},
    name="tokens_part",
    default="split",
    collapsed=True,
)
st.markdown(section("tokens", f"look_{part}"))
PARTS[part](view)
under_the_glass(view, sites=("*.token_ids", "*.token_embedding"))
with st.expander(t("story.why"), icon=":material/school:"):
    st.markdown(section("tokens", "why"))
