"""What the parts of the encoder page share: names of depths and measures, how agreement is called, whose labels fit."""

import math

import streamlit as st

from pages.ui.header import View
from pages.ui.language import plain, strings, t
from pages.ui.verdict import class_word
from transformer_core.analysis.encoder.measures import MEASURES
from transformer_core.analysis.positions.order_cases import LABELS

CLOSE, LOOSE = 0.7, 0.3


def depth_names(view: View, *, short: bool = False) -> list[str]:
    """Return what each depth is called: the embedding, then after each layer."""
    layers = range(view.bundle.config.n_layers)
    after = [str(layer) if short else t("encoder.after", layer=layer) for layer in layers]
    return [t("encoder.depth_embedding"), *after]


def class_name(view: View, number: int) -> str:
    """Return a class of the model, by number, in the language chosen."""
    return class_word(view.bundle.labels[number])


def measure_names(*, short: bool = False) -> list[str]:
    """Return the measures in the language chosen, in the library's order; short ones fit slanted above a column."""
    return [t(f"encoder.short_{name}") if short else t(f"encoder.measure_{name}") for name in MEASURES]


def board_words() -> dict[str, str]:
    """Return what a matrix that holds no attention weights says in the language chosen."""
    return strings("matrix") | strings("encoder_board")


def agreement_of(rho: float) -> str:
    """Return how well a rank correlation means that two orders agree: close, loose or none."""
    return "close" if rho >= CLOSE else "loose" if rho >= LOOSE else "none"


def signed(rho: float) -> str:
    """Return a rank correlation in two decimals, or a dash where there is none."""
    return "–" if math.isnan(rho) else f"{rho:+.2f}"


def token_name(view: View, position: int) -> str:
    """Return a token in Markdown, with its position."""
    return f"**{plain(view.encoding.labels[position])}** ({position})"


def knows_reviews(view: View) -> bool:
    """Tell whether the built-in reviews have this model's labels; say so where they have not."""
    if view.bundle.labels == LABELS:
        return True
    told = ", ".join(plain(label) for label in view.bundle.labels[:8])
    st.info(t("encoder.other_labels", labels=told), icon=":material/info:")
    return False


def has_words(view: View) -> bool:
    """Tell whether the text has a token of its own; say so where it has none."""
    if not all(view.encoding.special):
        return True
    st.info(t("encoder.no_words"), icon=":material/info:")
    return False
