"""Translation: a sentence written in another language word by word, where it looks, and what searching finds.

Read next: ui/translation.py.
"""

import streamlit as st

from pages.ui.glass import under_the_glass
from pages.ui.header import View, header
from pages.ui.language import t
from pages.ui.model_page import model_page
from pages.ui.translation import translated
from pages.ui.translation_beam import show_beam
from pages.ui.translation_cross import show_cross
from pages.ui.translation_forced import show_forced
from pages.ui.translation_search import show_search
from pages.ui.translation_steps import show_steps
from pages.ui.translation_toy import show_toy
from pages.ui.url import choose

EXAMPLE = "A man in a red shirt is riding a horse."
OWN_TEXT = {"steps": show_steps, "cross": show_cross, "beam": show_beam, "forced": show_forced}
OWN_DATA = {"search": show_search, "toy": show_toy}
PARTS = ("steps", "cross", "beam", "search", "forced", "toy")


@st.fragment
def explore(view: View) -> None:
    """Show the chosen part; a click in it runs nothing else on the page."""
    parts = {name: t(f"translation.part_{name}") for name in PARTS}
    part = choose(t("translation.part"), parts, name="translation_part", default="steps", collapsed=True)
    if part in OWN_TEXT:
        OWN_TEXT[part](view)
    else:
        OWN_DATA[part]()
    under_the_glass(
        view, sites=("decoder.*.cross_attention.*",), target_ids=lambda: translated(view).value.token_ids[:-1]
    )


model_page("translation", lambda: header(kinds=("translation",), default="translation-en-fr", example=EXAMPLE), explore)
