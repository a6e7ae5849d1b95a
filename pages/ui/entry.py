"""The script that Streamlit runs for every visit and every change: the frame around the page, then the page.

Read next: header.py.
"""

import streamlit as st

from pages.ui.language import ASSETS, language
from pages.ui.navigation import ICONS, register, show_next
from pages.ui.url import start_in

st.set_page_config(page_title="Vitrine", page_icon=str(ASSETS / "icon.svg"), layout="wide")
on_primary = "#14121b" if st.context.theme.type == "dark" else "#ffffff"  # white is too pale on dark's lilac
st.html(
    "<style>.stMainBlockContainer { padding-top: 4.5rem; }"
    f'[data-testid="stBaseButton-primary"] * {{ color: {on_primary}; }}</style>'
    f"<script>document.documentElement.lang = '{language()}'</script>",
    unsafe_allow_javascript=True,
)
start_in(language())
page = register()
st.session_state.page = page.url_path
page.run()
show_next(page.url_path or next(iter(ICONS)))
