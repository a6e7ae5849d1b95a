"""Whether a text lies outside what a model learned from, judged by what was measured of it, and what is said then."""

from math import exp

import streamlit as st

from pages.kit.asking import ask_once
from pages.kit.examples import readable, show_examples
from pages.kit.url import set_choice
from pages.language import joined, language_of, t, words
from transformer_core.analysis.strangeness import Strangeness, strangeness, unusual
from transformer_core.bundle import Bundle
from transformer_core.measured import Usual
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

OFFERED = 2  # sentences that a model can read


def outside(bundle: Bundle, encoding: Encoding) -> tuple[Strangeness, Usual] | None:
    """Return how strange a text is and what is usual, where of 100 texts that were set aside 95 are less strange.

    None where it is not stranger, is too short to be measured, or nothing was measured of this model.

    Args:
        encoding: of the text as the model reads it.
    """
    if not bundle.measured.usual or all(encoding.special):
        return None
    found = ask_once(strangeness, prompt=Prompt(bundle, encoding.text, len(encoding))).value
    usual = unusual(bundle, found)
    return None if usual is None else (found, usual)


def learned_by(bundle: Bundle) -> str | None:
    """Return in plain words what a shipped model learned from; None where nobody wrote it down."""
    key = f"learned.{bundle.name}"
    return t(key) if key in words("en") else None


def outside_note(bundle: Bundle, encoding: Encoding) -> str | None:
    """Return how strange a text is to a model, in words, where it lies outside what that learned; else None."""
    judged = outside(bundle, encoding)
    if judged is None:
        return None
    found, usual = judged
    by_character = language_of(encoding.text) == "zh" or bundle.tokenizer.kind == "character"
    said = {
        "value": f"{exp(found.value or 0):,.0f}",
        "median": f"{exp(usual.median):,.0f}",
        "high": f"{exp(usual.high):,.0f}",
        "unit": t(f"unit.{usual.unit}"),
        "piece": t("piece.character" if by_character else "piece.token"),
    }
    return t(f"outside.{found.measure}", **said)


def _lead(bundle: Bundle) -> str:
    learned = learned_by(bundle)
    return t("outside.lead_of", learned=learned) if learned else t("outside.lead")


def show_sentences(bundle: Bundle, encoding: Encoding) -> None:
    """Show in one row a model's sentences in which something happens.

    Where the text lies outside what the model learned, the row says so, with two sentences that it can read: above
    every answer, and nothing below moves for it.
    """
    if outside(bundle, encoding) is None:
        show_examples(bundle)
        return
    with st.container(key="notice", horizontal=True, vertical_alignment="center"):
        offered = sorted(readable(bundle), key=len)[:OFFERED]
        said = joined(_lead(bundle), *([t("outside.can_read")] if offered else []))
        st.markdown(f":material/warning: **{said}**", width="content")
        for number, text in enumerate(offered):
            st.button(text, key=f"readable_{number}", on_click=set_choice, args=("text", text))
