"""What the recurrent model of the page has (directions, gates, attention), and words to choose from."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.ui.header import View
from pages.ui.language import plain, t
from pages.ui.pickers import shown_word, some_places
from pages.ui.url import choose
from transformer_core.analysis.before.gates import DIRECTIONS
from transformer_core.models.recurrent import RecurrentConfig, Seq2Seq


def recurrent_config(view: View) -> RecurrentConfig:
    """Return the configuration of the model, which is a recurrent one."""
    model = view.bundle.model
    assert isinstance(model, Seq2Seq)
    return model.config


def directions(view: View) -> tuple[str, ...]:
    """Return the directions in which the model's encoder reads."""
    return DIRECTIONS if recurrent_config(view).bidirectional else DIRECTIONS[:1]


def choose_direction(view: View, *, name: str) -> str:
    """Show the directions and return the one chosen.

    Args:
        name: the choice's name in the URL.
    """
    options = {direction: t(f"before.{direction}") for direction in directions(view)}
    return choose(t("before.direction"), options, name=name, default="forward")


def has_gates(view: View) -> bool:
    """Return whether the model's encoder has gates; show a message where it has none."""
    gated = recurrent_config(view).unit != "tanh"
    if not gated:
        st.info(t("before.no_gates", name=plain(view.bundle.name)), icon=":material/info:")
    return gated


def has_attention(view: View) -> bool:
    """Return whether the model's decoder has attention; show a message where it has none."""
    attends = recurrent_config(view).attention is not None
    if not attends:
        st.info(t("before.no_attention", name=plain(view.bundle.name)), icon=":material/info:")
    return attends


def word_options(tokens: Sequence[str], values: np.ndarray) -> dict[str, str]:
    """Return up to four words of a sentence to choose from, by place; the one with the greatest value is among them.

    Shapes:
        values: (pos,)
    """
    places = sorted({*some_places(np.asarray(values)), int(np.argmax(values))})
    return {str(place): f"{place} · {plain(shown_word(tokens[place]))}" for place in places}
