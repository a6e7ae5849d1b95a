"""The pages there are, and how one opens another.

Read next: entry.py.
"""

from pathlib import Path

import streamlit as st

from pages.ui.language import t

PAGES = Path(__file__).parents[1]
ICONS = {
    "home": ":material/home:",
    "attention": ":material/grid_on:",
    "train": ":material/model_training:",
    "compare": ":material/compare_arrows:",
}


def page_path(name: str) -> Path:
    """Return the script of a page."""
    return PAGES / f"{name}.py"


def open_page(name: str) -> None:
    """Go to another page with everything that is in the URL."""
    st.switch_page(page_path(name), query_params=st.query_params.to_dict())


def register() -> st.Page:
    """Show the navigation and return the page that was asked for; the first one is the front page."""
    front = next(iter(ICONS))
    pages = [
        st.Page(page_path(name), title=t(f"nav.{name}"), icon=icon, url_path=name, default=name == front)
        for name, icon in ICONS.items()
    ]
    return st.navigation(pages, position="top")
