"""Encoder and classifier: layer by layer to the verdict, which tokens it rests on, and how sure it may be.

Read next: ui/encoder.py.
"""

import streamlit as st

from pages.ui.encoder_agreement import agreement_part
from pages.ui.encoder_edit import edit_part
from pages.ui.encoder_layers import layers_part
from pages.ui.encoder_sum import sum_part
from pages.ui.encoder_sure import sure_part
from pages.ui.encoder_tokens import tokens_part
from pages.ui.glass import under_the_glass
from pages.ui.header import View, header
from pages.ui.language import section, t
from pages.ui.model_page import model_page
from pages.ui.url import choose

PARTS = {
    "layers": layers_part,
    "sum": sum_part,
    "tokens": tokens_part,
    "agree": agreement_part,
    "edit": edit_part,
    "sure": sure_part,
}


@st.fragment
def explore(view: View) -> None:
    """Show the chosen part; a click in it runs nothing else on the page."""
    parts = {name: t(f"encoder.part_{name}") for name in PARTS}
    part = choose(t("encoder.part"), parts, name="encoder_part", default="layers", collapsed=True)
    st.markdown(section("encoder", f"look_{part}"))
    PARTS[part](view)
    under_the_glass(view, sites=("class_logits", "*_embedding", "encoder.final_norm.normalized", "*.residual"))


model_page("encoder", lambda: header(kinds=("classifier",), default="sentiment"), explore)
