"""The front door: `streamlit run app.py` mounts what the rooms declare."""

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
from pages.hall.alone import alone_routes
from pages.hall.files import file_routes
from pages.hall.projector import projector_routes
from pages.hall.room_routes import room_routes
from pages.home.verdict import VERDICT
from pages.kit.live import PicturesFirst, live_routes
from pages.kit.navigation import HIDDEN, ICONS
from pages.lab.page import LAB
from pages.lifespan import guard, health_routes, lifespan, show_error
from pages.masks.page import MASKS
from pages.norm.page import NORM
from pages.one_step.page import ONE_STEP
from pages.positions.page import POSITIONS
from pages.room import live_parts
from pages.running_sign import running_routes
from pages.serving.index import index_routes
from pages.serving.owners import GiveKey
from pages.serving.traffic import ChangesFirst
from pages.tokens.page import TOKENS
from pages.translation.page import TRANSLATION
from pages.why.page import WHY

ENTRY = Path(__file__).parent / "pages" / "entry.py"
INPUT, INSIDE = (TOKENS, EMBEDDINGS, POSITIONS, MASKS), (ATTENTION, FEED_FORWARD, NORM, WHY)
MODELS = (ENCODER, TRANSLATION, BERT, GPT, BEFORE)
LIVE = live_parts((*INPUT, *INSIDE, *MODELS, ONE_STEP, LAB)) | {
    ("home", "verdict"): VERDICT.live,
    ("glass", "cell"): live_cell,
}
app = st.App(
    ENTRY,
    lifespan=lifespan,
    routes=[
        *film_routes(),
        *running_routes(),
        *live_routes(LIVE),
        *file_routes(),
        *projector_routes(),
        *room_routes(),
        *alone_routes(),
        *health_routes(),
        *index_routes((*ICONS, *HIDDEN)),
    ],
    middleware=[*guard(), Middleware(ChangesFirst), Middleware(PicturesFirst), Middleware(GiveKey)],
    on_script_error=show_error,
)
