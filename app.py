"""The front door: `streamlit run app.py`."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from pages.attention.arcs import live_arcs
from pages.attention.effect import live_effect
from pages.attention.flow import live_flow
from pages.attention.heads import live_heads
from pages.attention.tendencies import live_tendencies
from pages.bert.fill import live_fill
from pages.embeddings.sentence import live_sentence
from pages.encoder.layers import live_layers
from pages.film.mount import film_routes
from pages.gpt.draw import live_draw
from pages.gpt.next import live_next
from pages.hall.files import file_routes
from pages.hall.projector import projector_routes
from pages.hall.room_routes import room_routes
from pages.home.verdict import live_verdict
from pages.masks.batch import live_batch
from pages.masks.paint import live_paint
from pages.norm.vector import live_vector
from pages.positions.matrix import live_matrix
from pages.translation.cross import live_cross
from pages.translation.steps import live_steps
from pages.ui.live import live_routes
from pages.ui.server import guard, health_routes, lifespan, show_error
from pages.ui.traffic import CountChanges
from pages.ui.underway import underway_routes
from pages.ui.who import GiveKey

ENTRY = Path(__file__).parent / "pages" / "ui" / "entry.py"
LIVE = {
    ("home", "verdict"): live_verdict,
    ("attention", "heads"): live_heads,
    ("attention", "arcs"): live_arcs,
    ("attention", "flow"): live_flow,
    ("attention", "tendencies"): live_tendencies,
    ("attention", "effect"): live_effect,
    ("masks", "paint"): live_paint,
    ("masks", "batch"): live_batch,
    ("embeddings", "sentence"): live_sentence,
    ("positions", "matrix"): live_matrix,
    ("norm", "vector"): live_vector,
    ("encoder", "layers"): live_layers,
    ("translation", "steps"): live_steps,
    ("translation", "cross"): live_cross,
    ("bert", "fill"): live_fill,
    ("gpt", "next"): live_next,
    ("gpt", "draw"): live_draw,
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
    ],
    middleware=[*guard(), Middleware(CountChanges), Middleware(GiveKey)],
    on_script_error=show_error,
)
