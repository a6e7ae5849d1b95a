"""The shipped models: their names, and each opened once for the whole server.

Read next: header.py.
"""

import streamlit as st

from pages.ui.language import ASSETS
from transformer_core.checkpoints import Bundle, load

CHECKPOINTS = ASSETS / "checkpoints"


def bundle_names() -> list[str]:
    """Return the names of the shipped bundles, in the order they are shown."""
    return sorted(path.parent.name for path in CHECKPOINTS.glob("*/config.json"))


@st.cache_resource(max_entries=8, show_spinner=False)
def open_bundle(name: str) -> Bundle:
    """Load a shipped bundle; BundleError says what is wrong with it."""
    return load(CHECKPOINTS / name)
