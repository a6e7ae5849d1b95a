"""GPT: what comes next, how it is drawn, writing on, the answer layer by layer, and what the causal mask is for.

Read next: ui/gpt.py.
"""

import streamlit as st

from pages.ui.glass import under_the_glass
from pages.ui.gpt import header_of_gpt
from pages.ui.gpt_draw import draw_part
from pages.ui.gpt_lens import lens_part
from pages.ui.gpt_mask import mask_part
from pages.ui.gpt_next import next_part
from pages.ui.gpt_write import write_part
from pages.ui.header import View
from pages.ui.language import section, t
from pages.ui.model_page import model_page
from pages.ui.url import choose

PARTS = {"next": next_part, "draw": draw_part, "write": write_part, "lens": lens_part, "mask": mask_part}


@st.fragment
def explore(view: View) -> None:
    """Show the chosen part; a click in it runs nothing else on the page."""
    parts = {name: t(f"gpt.part_{name}") for name in PARTS}
    part = choose(t("gpt.part"), parts, name="gpt_part", default="next", collapsed=True)
    st.markdown(section("gpt", f"look_{part}"))
    PARTS[part](view)
    under_the_glass(view, sites=("logits", "decoder.final_norm.*", "decoder.*"))


model_page("gpt", header_of_gpt, explore)
