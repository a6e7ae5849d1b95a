"""The front door: `streamlit run app.py`."""

from pathlib import Path

import streamlit as st

from pages.film.mount import film_routes
from pages.ui.server import guard, health_routes, lifespan, show_error
from pages.ui.underway import underway_routes

ENTRY = Path(__file__).parent / "pages" / "ui" / "entry.py"
app = st.App(
    ENTRY,
    lifespan=lifespan,
    routes=[*film_routes(), *underway_routes(), *health_routes()],
    middleware=guard(),
    on_script_error=show_error,
)
