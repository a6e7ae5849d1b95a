"""The choice of language, and beside it the button that copies the link of the screen."""

import streamlit as st

from pages.ui.component import registered
from pages.ui.language import LANGUAGES, strings, t
from pages.ui.url import choose


def language_and_share() -> None:
    """Show both at the right end of the header's row; the button works in the browser alone."""
    with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        choose(t("header.language"), LANGUAGES, name="lang", default="en", collapsed=True, always=True)
        registered("share")(key="share", data=strings("share"), width="content")
