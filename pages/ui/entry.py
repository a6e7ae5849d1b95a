"""The script that Streamlit runs for every visit and every change: the frame around the page, then the page.

Read next: header.py.
"""

import streamlit as st

from pages.ui.language import ASSETS, language
from pages.ui.navigation import ICONS, register, show_next
from pages.ui.url import start_in

st.set_page_config(page_icon=str(ASSETS / "icon.svg"), layout="wide")  # first, or a page's own icon is fetched
DARK, WHITE = "#14121b", "#ffffff"

on_primary = DARK if st.context.theme.type == "dark" else WHITE  # white is too pale on dark's lilac
style = f"""
.stMainBlockContainer {{ padding-top: 4.5rem; }}
[data-testid="stBaseButton-primary"]:not(:disabled) *, [data-tag] * {{ color: {on_primary}; }}
.katex-display {{ overflow-y: hidden; padding: 2px 4px; }}
.katex-display > .katex {{ font-size: 1.05em; }}
"""
start_in(language())
st.session_state.framed = language()
page = register()
st.set_page_config(page_title=f"{page.title} · Vitrine")
st.html(
    f"<style>{style}</style><script>document.documentElement.lang = '{language()}'</script>",
    unsafe_allow_javascript=True,
)
st.session_state.page = page.url_path
page.run()
show_next(page.url_path or next(iter(ICONS)))
