"""The model's verdict on the text: one bar a class, each with its probability.

Read next: attention.py.
"""

from collections.abc import Sequence

import streamlit as st

from pages.ui.language import language, words


def class_word(label: str) -> str:
    """Return a class's name in the language chosen, or as the bundle has it."""
    return words(language()).get(f"class.{label}", label)


def show_verdict(labels: Sequence[str], probabilities: Sequence[float]) -> None:
    """Show every class with its probability, the likeliest in bold."""
    likeliest = max(probabilities)
    for label, probability, place in zip(labels, probabilities, st.columns(len(labels)), strict=True):
        name = f"**{class_word(label)}**" if probability == likeliest else class_word(label)
        place.progress(probability, f"{name} {probability:.1%}")
