"""The script that Streamlit runs for every visit and every change: the page registry, then the page.

Read next: header.py.
"""

from pathlib import Path

import streamlit as st

from pages.ui.language import ASSETS, t

PAGES = Path(__file__).parents[1]

st.set_page_config(page_title="Vitrine", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.html("<style>.stMainBlockContainer { padding-top: 4.5rem; }</style>")
page = st.navigation(
    [
        st.Page(PAGES / "home.py", title=t("nav.home"), icon=":material/home:", url_path="home", default=True),
        st.Page(PAGES / "attention.py", title=t("nav.attention"), icon=":material/grid_on:", url_path="attention"),
    ],
    position="top",
)
page.run()
