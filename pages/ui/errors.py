"""What a person sees when a page fails in a way that nobody foresaw: words, never a stack trace."""

import logging

import streamlit as st

from pages.ui.language import t


def show_error(error: Exception) -> bool:
    """Log the error for whoever runs the server and tell the reader that the page lives on."""
    logging.getLogger("vitrine").error("a page failed", exc_info=error)
    st.error(t("error.unforeseen", kind=type(error).__name__), icon=":material/error:")
    return True
