"""Names of depths, classes, measures and tokens on the encoder page, and messages where a part has nothing to show."""

import math

import streamlit as st

from pages.ui.header import View
from pages.ui.language import plain, strings, t
from pages.ui.verdict import class_word
from transformer_core.analysis.encoder.measures import MEASURES
from transformer_core.analysis.positions.order_cases import LABELS

CLOSE, LOOSE = 0.7, 0.3


def depth_names(view: View, *, short: bool = False) -> list[str]:
    """Return the name of each depth: the embedding, then each layer."""
    layers = range(view.bundle.config.n_layers)
    after = [str(layer) if short else t("encoder.after", layer=layer) for layer in layers]
    return [t("encoder.depth_embedding"), *after]


def class_name(view: View, number: int) -> str:
    """Return the name of a class of the model in the chosen language."""
    return class_word(view.bundle.labels[number])


def measure_names(*, short: bool = False) -> list[str]:
    """Return the names of MEASURES in the chosen language; short ones fit above a column."""
    return [t(f"encoder.short_{name}") if short else t(f"encoder.measure_{name}") for name in MEASURES]


def board_words() -> dict[str, str]:
    """Return the words of a matrix that holds no attention weights, in the chosen language."""
    return strings("matrix") | strings("encoder_board")


def agreement_of(rho: float) -> str:
    """Return how well two orders of this rank correlation agree: "close", "loose" or "none"."""
    return "close" if rho >= CLOSE else "loose" if rho >= LOOSE else "none"


def signed(rho: float) -> str:
    """Return a rank correlation with two decimals, or a dash for NaN."""
    return "–" if math.isnan(rho) else f"{rho:+.2f}"


def token_name(view: View, position: int) -> str:
    """Return a token in Markdown, with its position."""
    return f"**{plain(view.encoding.labels[position])}** ({position})"


def knows_reviews(view: View) -> bool:
    """Return whether the built-in reviews have this model's labels; show a message if they do not."""
    if view.bundle.labels == LABELS:
        return True
    labels = ", ".join(plain(label) for label in view.bundle.labels[:8])
    st.info(t("encoder.other_labels", labels=labels), icon=":material/info:")
    return False


def has_words(view: View) -> bool:
    """Return whether the text has a token that is not special; show a message if it has none."""
    if not all(view.encoding.special):
        return True
    st.info(t("encoder.no_words"), icon=":material/info:")
    return False
