"""BERT: hidden words with their probabilities, layer by layer; pairs, segments, the tied matrix, the masking recipe.

Read next: ui/bert.py.
"""

import streamlit as st

from pages.ui.bert import EXAMPLE, look_through
from pages.ui.bert_fill import fill_part
from pages.ui.bert_layers import layers_part
from pages.ui.bert_pair import pair_part
from pages.ui.bert_recipe import recipe_part
from pages.ui.bert_segments import segments_part
from pages.ui.bert_tied import tied_part
from pages.ui.header import View, header
from pages.ui.language import section, t
from pages.ui.model_page import model_page
from pages.ui.url import choose

PARTS = {
    "fill": fill_part,
    "layers": layers_part,
    "pair": pair_part,
    "segments": segments_part,
    "tied": tied_part,
    "recipe": recipe_part,
}
SITES = {
    "layers": ("*.residual",),
    "pair": ("pooled", "*.class_logits"),
    "segments": ("*.segment_embedding",),
    "tied": ("mlm_head.*",),
}


@st.fragment
def explore(view: View) -> None:
    """Show the chosen part; a click in it runs nothing else on the page."""
    parts = {name: t(f"bert.part_{name}") for name in PARTS}
    part = choose(t("bert.part"), parts, name="bert_part", default="fill", collapsed=True)
    st.markdown(section("bert", f"look_{part}"))
    look_through(PARTS[part](view), SITES.get(part, ("*",)))


model_page("bert", lambda: header(kinds=("bert",), default="bert", example=EXAMPLE), explore)
