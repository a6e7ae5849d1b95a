"""The model's verdict on the text: a bar for the likeliest class, and the probability of each.

Read next: attention.py.
"""

from collections.abc import Sequence

import streamlit as st

from pages.ui.language import language, plain, words


def class_word(label: str) -> str:
    """Return a class's name in the language chosen, or as the bundle has it."""
    return words(language()).get(f"class.{label}", plain(label))


def show_verdict(labels: Sequence[str], probabilities: Sequence[float]) -> None:
    """Show the likeliest class as a bar, and every class with its probability."""
    ranked = sorted(zip(probabilities, map(class_word, labels), strict=True), reverse=True)
    first, *others = (f"{name} {probability:.1%}" for probability, name in ranked)
    st.progress(ranked[0][0], " · ".join([f"**{first}**", *others]))
