"""The front door: `streamlit run app.py`."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from pages.attention.page import ATTENTION
from pages.bert.fill import live_fill
from pages.embeddings.sentence import live_sentence
from pages.encoder.page import ENCODER
from pages.feed_forward.coin import live_coin
from pages.feed_forward.curves import live_curves
from pages.feed_forward.neurons import live_neurons
from pages.film.mount import film_routes
from pages.glass.box import live_cell
from pages.gpt.draw import live_draw
from pages.gpt.lens import live_lens
from pages.gpt.mask import live_mask
from pages.gpt.next import live_next
from pages.gpt.verse import live_verse
from pages.gpt.write import live_write
from pages.hall.files import file_routes
from pages.hall.projector import projector_routes
from pages.hall.room_routes import room_routes
from pages.home.verdict import live_verdict
from pages.lab.heads import live_board
from pages.lab.steer import live_steer
from pages.masks.page import MASKS
from pages.norm.vector import live_vector
from pages.positions.exponent import live_exponent
from pages.positions.matrix import live_matrix
from pages.positions.schemes import live_schemes
from pages.positions.sum import live_sum
from pages.room import live_parts
from pages.translation.page import TRANSLATION
from pages.ui.index import index_routes
from pages.ui.live import PicturesFirst, live_routes
from pages.ui.server import guard, health_routes, lifespan, show_error
from pages.ui.traffic import ChangesFirst
from pages.ui.underway import underway_routes
from pages.ui.who import GiveKey
from pages.why.query_key import live_projections, live_symmetry
from pages.why.scaling import live_scaling

ENTRY = Path(__file__).parent / "pages" / "ui" / "entry.py"
LIVE = {
    ("home", "verdict"): live_verdict,
    ("embeddings", "sentence"): live_sentence,
    ("positions", "matrix"): live_matrix,
    ("norm", "vector"): live_vector,
    ("bert", "fill"): live_fill,
    ("gpt", "next"): live_next,
    ("gpt", "draw"): live_draw,
    ("feed_forward", "neurons"): live_neurons,
    ("feed_forward", "curves"): live_curves,
    ("gpt", "write"): live_write,
    ("gpt", "mask"): live_mask,
    ("gpt", "lens"): live_lens,
    ("gpt", "verse"): live_verse,
    ("positions", "exponent"): live_exponent,
    ("positions", "schemes"): live_schemes,
    ("why", "projections"): live_projections,
    ("why", "symmetry"): live_symmetry,
    ("why", "scaling"): live_scaling,
    ("feed_forward", "bernoulli"): live_coin,
    ("positions", "sum"): live_sum,
    ("lab", "heads"): live_board,
    ("lab", "steer"): live_steer,
    ("glass", "cell"): live_cell,
    **live_parts((ATTENTION, ENCODER, MASKS, TRANSLATION)),
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
        *index_routes(),
    ],
    middleware=[*guard(), Middleware(ChangesFirst), Middleware(PicturesFirst), Middleware(GiveKey)],
    on_script_error=show_error,
)
