"""A few of the examples that a run will learn from, shown before it starts."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import streamlit as st

from pages.ui.language import plain, t
from pages.ui.verdict import class_word
from transformer_core.training.corpora.reviews import passage, written_reviews
from transformer_core.training.corpora.sequences import sequences

COLOURS = ("orange", "blue")  # of the film's first two classes
LABELS = ("negative", "positive")
SHOWN, LOOKED_AT, LONGEST = 4, 64, 240


@lru_cache(maxsize=8)
def some_reviews(language: Any, seed: int) -> tuple[tuple[str, int], ...]:
    """Return some reviews with their labels, one of each construction that turns its words round."""
    written, _ = written_reviews(language, train=LOOKED_AT, held_out=0, seed=seed)
    turned = [one for one in written if one.construction != "plain"]
    found = {}
    for construction in dict.fromkeys(one.construction for one in turned):
        alike = [one for one in turned if one.construction == construction]
        found[construction] = next((one for one in alike if one.label == len(found) % len(LABELS)), alike[0])
    return tuple((one.text, one.label) for one in list(found.values())[:SHOWN])


def _lines(source: str, values: Mapping[str, Any]) -> list[str]:
    if source == "reviews":
        found = some_reviews(values["language"], values["seed"])
        return [f":{COLOURS[label]}-badge[{class_word(LABELS[label])}] {plain(text)}" for text, label in found]
    if source in ("copy", "reverse", "sort"):
        pairs, _ = sequences(
            source, symbols=values["symbols"], length=values["length"], train=SHOWN, held_out=0, seed=values["seed"]
        )
        return [f"`{one}` → `{other}`" for one, other in pairs[:SHOWN]]
    if source in ("characters", "masked_words"):
        return [f"“{plain(passage(values['language'])[:LONGEST].strip())} …”"]
    return []


def show_samples(source: str, values: Mapping[str, Any]) -> None:
    """Show a few examples where they come with the app."""
    lines = _lines(source, values)
    if lines:
        st.caption(t("train.samples"))
        st.markdown("  \n".join(lines))
