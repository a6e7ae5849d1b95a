"""Boxes that compute only once they are open, and the prediction that comes before a measured answer.

Read next: charts.py.
"""

from collections.abc import Mapping

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.language import t
from pages.ui.url import current, keep, widget_key

OPEN, CLOSED = "true", "false"


def lazy_box(label: str, *, icon: str, key: str, opened: bool = False) -> DeltaGenerator | None:
    """Show a box whose state is in the URL; None while it is closed.

    Args:
        key: names the state in the URL; boxes of one name on several pages are open or closed together.
        opened: whether it is open at first.
    """
    widget, usual = widget_key(key), OPEN if opened else CLOSED
    was = st.session_state.get(widget, (current(key) or usual) == OPEN)
    st.session_state[widget] = was  # to Streamlit, a box with other words on it is another one
    box = st.expander(label, icon=icon, key=widget, on_change="rerun")
    keep(key, OPEN if box.open else CLOSED, usual)
    return box if box.open else None


def predict(question: str, options: Mapping[str, str], *, about: str) -> str | None:
    """Ask what a person expects before they see it; None until they have answered.

    Args:
        question: in Markdown.
        options: labels by option.
        about: names what is asked; another name asks anew.
    """
    key = f"predict {about}"
    given = st.session_state.get(key)
    return st.radio(
        question,
        list(options),
        list(options).index(given) if given in options else None,
        format_func=options.__getitem__,
        horizontal=True,
        key=key,
    )


def judged(guess: str, outcome: str, options: Mapping[str, str]) -> str:
    """Return the words that compare a prediction with what was measured."""
    return t("try.right") if guess == outcome else t("try.wrong", outcome=options[outcome])
