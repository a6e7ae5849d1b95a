"""What the model concludes from the sentence, and which words did it."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.kit.controls import Values
from pages.kit.explanation import show_explanation, show_weak_sides
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.navigation import open_page
from pages.kit.verdict import concludes, outcome_verdict, show_verdict_of
from pages.language import t
from pages.room import Part
from transformer_core.analysis.outcome import read


def _picture(view: View, _: Values) -> Live:
    """Return what the model concludes."""
    return Live(verdicts={"home": outcome_verdict(view, read(view.bundle, view.encoding, sites=()).probabilities)})


def _show(view: View) -> DeltaGenerator | None:
    """Show the verdict and the words that led to it; return the place for the words that would change it."""
    if view.bundle.kind == "translation":
        if st.button(t("home.translate"), icon=":material/translate:"):
            open_page("translation")
        return None
    if not concludes(view):
        return None
    words_place, others_place = st.columns([3, 2], gap="large")
    with words_place:
        show_verdict_of(view, VERDICT.live(view).verdicts["home"], place="home")
        VERDICT.follow(view)
        show_explanation(view)
        show_weak_sides(view)
    with others_place:
        return st.container(key="counter_examples", gap=None)


VERDICT = Part("home", "verdict", _show, _picture)
