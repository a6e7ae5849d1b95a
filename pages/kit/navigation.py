"""The pages there are, in the order in which they are best read, and how one opens another."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from pages.language import t
from pages.link import LEAVES

PAGES = Path(__file__).parents[1]
SECTIONS = {
    "start": {"home": ":material/home:", "lectures": ":material/co_present:"},
    "input": {
        "tokens": ":material/content_cut:",
        "embeddings": ":material/scatter_plot:",
        "positions": ":material/waves:",
        "masks": ":material/visibility_off:",
    },
    "inside": {
        "attention": ":material/grid_on:",
        "feed_forward": ":material/show_chart:",
        "norm": ":material/balance:",
        "why": ":material/help:",
    },
    "models": {
        "encoder": ":material/rule:",
        "translation": ":material/translate:",
        "bert": ":material/ink_highlighter:",
        "gpt": ":material/edit_note:",
        "before": ":material/history:",
    },
    "training": {"train": ":material/model_training:", "compare": ":material/compare_arrows:"},
    "lab": {"lab": ":material/science:", "my_model": ":material/upload_file:"},
}
HIDDEN = {"server": ":material/dns:"}  # reached by its address
CHOICES = {"why": "why"}  # of a page's parts, in the URL, where it is not the page's name with _part
ICONS = {name: icon for pages in SECTIONS.values() for name, icon in pages.items()}


def choice_of_part(page: str) -> str:
    """Return the name that the choice of a page's parts has in the URL."""
    return CHOICES.get(page, f"{page}_part")


def page_path(name: str) -> Path:
    """Return the script of a page."""
    return PAGES / name / "page.py"


def open_page(name: str, said: Mapping[str, str] | None = None) -> None:
    """Go to another page, which is a step of the browser's history.

    Args:
        said: by the link of that page; by default everything that is in the URL.
    """
    said = dict(st.query_params.to_dict() if said is None else said)
    if name != (st.session_state.page or next(iter(ICONS))):
        said[LEAVES] = "1"
    st.switch_page(page_path(name), query_params=said)


def register() -> st.Page:
    """Show the navigation and return the page that was asked for; the first one is the front page."""
    front = next(iter(ICONS))
    pages = {
        t(f"nav.{section}"): [
            st.Page(page_path(name), title=t(f"nav.{name}"), icon=icon, url_path=name, default=name == front)
            for name, icon in names.items()
        ]
        for section, names in SECTIONS.items()
    }
    for name, icon in HIDDEN.items():
        path, title = page_path(name), t(f"{name}.heading")
        pages[next(iter(pages))].append(st.Page(path, title=title, icon=icon, url_path=name, visibility="hidden"))
    return st.navigation(pages, position="top")


def show_next(name: str) -> None:
    """Show the way to the page that is best read after this one: from all where one starts, to the first other one."""
    names = [other for other in ICONS if other == name or other not in SECTIONS["start"]]
    place = names.index(name) + 1 if name in names else 0
    if place < len(names):
        following = names[place]
        if st.button(t("nav.next", page=t(f"nav.{following}")), icon=ICONS[following], type="tertiary", key="nav_next"):
            open_page(following)
