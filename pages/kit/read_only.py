"""A server on which visitors only look: VITRINE_READ_ONLY=1 takes runs, uploads and opened models away."""

import streamlit as st

from pages.language import t
from pages.serving.limits import limits


def refuse_read_only() -> bool:
    """Tell whether visitors may only look, and say so in the place of the controls that are not there."""
    read_only = limits().read_only
    if read_only:
        st.info(t("read_only.said"), icon=":material/visibility:")
    return read_only
