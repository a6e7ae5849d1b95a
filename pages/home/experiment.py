"""Home's parts: the verdict with its words, and the diagram of which every named part opens its page."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.home.diagram import show_architecture
from pages.ui.because import show_because, show_weak_sides
from pages.ui.header import View
from pages.ui.language import t
from pages.ui.navigation import open_page
from pages.ui.url import keep
from pages.ui.verdict import concludes, show_outcome
from transformer_core.analysis.outcome import read

READING = {
    "tokens": ("tokens", ""),
    "embedding": ("embeddings", ""),
    "positions": ("positions", ""),
    "attention": ("attention", ""),
    "feed_forward": ("feed_forward", ""),
    "norm": ("norm", ""),
    "stream": ("norm", "residual"),
}
PLACES = {
    "classifier": READING | {"pooled": ("encoder", "layers"), "classifier": ("encoder", "sum")},
    "bert": READING | {"word_scores": ("bert", "fill"), "pair": ("bert", "pair")},
    "gpt": READING | {"word_scores": ("gpt", "lens"), "next_token": ("gpt", "next")},
    "encoder": READING | {"pooled": ("embeddings", "sentence")},
    "translation": READING
    | {
        "target": ("translation", "steps"),
        "memory": ("translation", "cross"),
        "cross": ("translation", "cross"),
        "word_scores": ("translation", "forced"),
    },
}


def show_verdict_of(view: View) -> DeltaGenerator | None:
    """Show what the model makes of the sentence and which words did it; return the place for what would turn it."""
    if view.bundle.kind == "translation":
        if st.button(t("home.translate"), icon=":material/translate:"):
            open_page("translation")
        return None
    if not concludes(view):
        return None
    words_place, others_place = st.columns([3, 2], gap="large")
    with words_place:
        show_outcome(view, read(view.bundle, view.encoding, sites=()).probabilities)
        show_because(view)
        show_weak_sides(view)
    return others_place.container(key="counter_examples", gap=None)


def show_diagram(view: View) -> None:
    """Show the loaded model as a diagram, and open the page of the part that is chosen in it."""
    places = PLACES[view.bundle.kind]
    chosen = show_architecture(view, {part: t(f"nav.{page}") for part, (page, _) in places.items()})
    if chosen in places:
        page, part = places[chosen]
        if part:
            keep(f"{page}_part", part, "")
        open_page(page)
