"""What the recurrent model of the page has (directions, gates, attention), and words to choose from."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.kit.controls import Choice
from pages.kit.header import View, shown_word, some_places
from pages.kit.models import model_names, offer_model
from pages.language import plain, section, t
from transformer_core.analysis.before.gates import GATES, directions_of, recurrent_model
from transformer_core.models.recurrent import RecurrentConfig, Seq2Seq

ATTENTIVE = "seq2seq-en-fr"
STATES = ("encoder.*.hidden", "encoder.hidden", "recurrent.hidden")  # of the glass


def recurrent_config(view: View) -> RecurrentConfig:
    """Return the configuration of the model, which is an encoder-decoder."""
    model = view.bundle.model
    assert isinstance(model, Seq2Seq)
    return model.config


def is_language_model(view: View) -> bool:
    """Return whether the model foresees the next character of one text, and is no encoder-decoder."""
    return view.bundle.kind == "lm"


def worded(view: View, name: str, /, **values: object) -> str:
    """Return words of the page, those of a language model where it is one.

    Args:
        name: of the words, without the page's; those of a language model end with ``_lm``.
    """
    return t(f"before.{name}_lm" if is_language_model(view) else f"before.{name}", **values)


def worded_section(view: View, name: str, /, **values: object) -> str:
    """Return a section of the page's prose, that of a language model where it is one, with values put in."""
    return section("before", f"{name}_lm" if is_language_model(view) else name).format(**values)


def directions(view: View) -> tuple[str, ...]:
    """Return the directions in which the model reads."""
    return directions_of(recurrent_model(view.bundle))


def direction_control(name: str) -> Choice[str]:
    """Return the choice of a direction in which the model reads."""
    return Choice(name, directions, label="before.direction", words="before.direction_{}", default="forward")


DIRECTION = direction_control("before_direction")


def show_direction(view: View, control: Choice[str] = DIRECTION) -> str:
    """Show the directions and return the one chosen; a language model has but one, and no control."""
    return "forward" if is_language_model(view) else control.show(view)


def has_gates(view: View) -> bool:
    """Return whether what reads has gates."""
    return bool(GATES[recurrent_model(view.bundle).config.unit])


def has_encoder(view: View) -> bool:
    """Return whether the model is an encoder-decoder; offer one where it is not."""
    if is_language_model(view):
        offer_model(t("before.needs_pair", name=plain(view.bundle.name)), ("seq2seq",))
        return False
    return True


def has_attention(view: View) -> bool:
    """Return whether the model's decoder has attention; say so and offer one that has where it has none."""
    if not has_encoder(view):
        return False
    attends = recurrent_config(view).attention is not None
    if not attends:
        message = t("before.no_attention", name=plain(view.bundle.name))
        if ATTENTIVE in model_names(None, ("seq2seq",)):
            offer_model(message, ("seq2seq",), name=ATTENTIVE)
        else:
            st.info(message, icon=":material/info:")
    return attends


def word_options(tokens: Sequence[str], values: np.ndarray) -> dict[str, str]:
    """Return up to four words of a sentence to choose from, by place; the one with the greatest value is among them.

    Shapes:
        values: (pos,)
    """
    places = sorted({*some_places(np.asarray(values)), int(np.argmax(values))})
    return {str(place): f"{place} · {plain(shown_word(tokens[place]))}" for place in places}
