"""The front door: `streamlit run app.py`. Read next: pages/ui/entry.py, the page registry."""

from pathlib import Path

import streamlit as st

from pages.ui.errors import show_error
from pages.ui.server import lifespan

app = st.App(Path(__file__).parent / "pages" / "ui" / "entry.py", lifespan=lifespan, on_script_error=show_error)
