"""Before Transformers: what gates keep, what one vector holds, where a decoder looks, how far slopes reach, and time.

Read next: ui/before.py.
"""

import streamlit as st

from pages.ui.asking import ask_once
from pages.ui.before_gates import gates_part
from pages.ui.before_look import look_part
from pages.ui.before_reach import reach_part
from pages.ui.before_time import time_part
from pages.ui.before_vector import vector_part
from pages.ui.glass import under_the_glass
from pages.ui.header import View, header
from pages.ui.language import section, t
from pages.ui.model_page import model_page
from pages.ui.url import choose
from transformer_core.analysis.before.alignments import words_read

EXAMPLE = "A man in a red shirt is riding a horse."
SITES = {
    "vector": ("encoder.summary",),
    "look": ("decoder.alignment.weights", "decoder.context"),
    "reach": ("encoder.*.candidate", "encoder.hidden"),
}
PARTS = {"gates": gates_part, "vector": vector_part, "look": look_part, "reach": reach_part, "time": time_part}


@st.fragment
def explore(view: View) -> None:
    """Show the chosen part; a click in it runs nothing else on the page."""
    parts = {name: t(f"before.part_{name}") for name in PARTS}
    part = choose(t("before.part"), parts, name="before_part", default="gates", collapsed=True)
    st.markdown(section("before", f"look_{part}"))
    PARTS[part](view)
    under_the_glass(
        view,
        sites=SITES.get(part, ("encoder.*.hidden", "encoder.hidden")),
        target_ids=lambda: ask_once(words_read, **view.asked).value,
    )


model_page("before", lambda: header(kinds=("seq2seq",), default="seq2seq-en-fr", example=EXAMPLE), explore)
