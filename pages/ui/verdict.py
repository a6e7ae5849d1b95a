"""The model's verdict on the text: the probability of each class, in words and as one bar.

Read next: attention.py.
"""

from collections.abc import Sequence
from html import escape

import streamlit as st

from pages.ui.language import language, plain, words

HUES = ("#b5702a", "#1f8f9c", "#8a55d0", "#c23b75", "#5a7d2a", "#3b76d4")  # the two ends of the signed scale first


def class_word(label: str) -> str:
    """Return a class's name in the language chosen, or as the bundle has it."""
    return words(language()).get(f"class.{label}", plain(label))


def show_verdict(labels: Sequence[str], probabilities: Sequence[float]) -> None:
    """Show every class with its probability, and as a part of one bar; a class keeps its side and hue."""
    said = words(language())
    winner = max(probabilities)
    names, parts = [], []
    for index, (label, probability) in enumerate(zip(labels, probabilities, strict=True)):
        name = escape(f"{said.get(f'class.{label}', label)} {probability:.1%}")
        hue = HUES[index % len(HUES)]
        weight = 650 if probability == winner else 400
        mark = f'<span aria-hidden="true" style="color:{hue}">■</span>'
        names.append(f'<span style="font-weight:{weight}">{mark} {name}</span>')
        parts.append(f'<div style="width:{100 * probability:.3f}%;background:{hue}"></div>')
    st.html(
        f'<div style="display:flex;flex-wrap:wrap;gap:0 1em;font-size:0.95rem">{"".join(names)}</div>'
        '<div aria-hidden="true" style="display:flex;height:10px;border-radius:5px;overflow:hidden;margin:6px 0 4px">'
        f"{''.join(parts)}</div>"
    )
