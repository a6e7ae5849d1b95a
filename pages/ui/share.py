"""The choice of language, and beside it the button that copies the link of the screen."""

import streamlit as st

from pages.figures.standalone import COMPONENTS
from pages.ui.component import registered
from pages.ui.language import LANGUAGES, strings, t
from pages.ui.url import choose

_FOLDER = COMPONENTS / "share"
_ASSETS = ((_FOLDER / "share.js").read_text(encoding="utf-8"), (_FOLDER / "share.css").read_text(encoding="utf-8"))


def language_and_share() -> None:
    """Show both at the right end of the header's row; the button works in the browser alone."""
    with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        choose(t("header.language"), LANGUAGES, name="lang", default="en", collapsed=True, always=True)
        registered("share", *_ASSETS)(key="share", data=strings("share"), width="content")
