"""What every page of a model is made of, and run at a key without the frame around it.

Read next: glass.py.
"""

from collections.abc import Callable

import streamlit as st

from pages.ui.header import View
from pages.ui.language import section, t


@st.fragment
def model_page(name: str, look: Callable[[], View], explore: Callable[[View], None]) -> None:
    """Show a page's header, its heading, what it explores, and why the thing is there.

    Args:
        name: of the page's words and prose.
        look: shows the header and returns what it chose.
        explore: shows the parts of the page.
    """
    view = look()
    st.header(t(f"{name}.heading"), anchor=False)
    explore(view)
    with st.expander(t("story.why"), icon=":material/school:"):
        st.markdown(section(name, "why"))
