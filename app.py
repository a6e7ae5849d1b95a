"""The front door: `streamlit run app.py`."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from pages.attention.page import ATTENTION
from pages.before.page import BEFORE
from pages.bert.page import BERT
from pages.embeddings.page import EMBEDDINGS
from pages.encoder.page import ENCODER
from pages.feed_forward.page import FEED_FORWARD
from pages.film.mount import film_routes
from pages.glass.box import live_cell
from pages.gpt.page import GPT
from pages.hall.files import file_routes
from pages.hall.projector import projector_routes
from pages.hall.room_routes import room_routes
from pages.home.verdict import VERDICT
from pages.lab.page import LAB
from pages.masks.page import MASKS
from pages.norm.page import NORM
from pages.positions.page import POSITIONS
from pages.room import live_parts
from pages.tokens.page import TOKENS
from pages.translation.page import TRANSLATION
from pages.ui.index import index_routes
from pages.ui.live import PicturesFirst, live_routes
from pages.ui.navigation import HIDDEN, ICONS
from pages.ui.server import guard, health_routes, lifespan, show_error
from pages.ui.traffic import ChangesFirst
from pages.ui.underway import underway_routes
from pages.ui.who import GiveKey
from pages.why.page import WHY

ENTRY = Path(__file__).parent / "pages" / "ui" / "entry.py"
ROOMS = (
    TOKENS,
    EMBEDDINGS,
    POSITIONS,
    MASKS,
    ATTENTION,
    FEED_FORWARD,
    NORM,
    WHY,
    ENCODER,
    TRANSLATION,
    BERT,
    GPT,
    BEFORE,
    LAB,
)
LIVE = {
    ("home", "verdict"): VERDICT.live,
    ("glass", "cell"): live_cell,
    **live_parts(ROOMS),
}
app = st.App(
    ENTRY,
    lifespan=lifespan,
    routes=[
        *film_routes(),
        *underway_routes(),
        *live_routes(LIVE),
        *file_routes(),
        *projector_routes(),
        *room_routes(),
        *health_routes(),
        *index_routes((*ICONS, *HIDDEN)),
    ],
    middleware=[*guard(), Middleware(ChangesFirst), Middleware(PicturesFirst), Middleware(GiveKey)],
    on_script_error=show_error,
)
