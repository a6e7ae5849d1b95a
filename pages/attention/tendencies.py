"""What each head tends to look at, on this sentence and on a sample of others, with the score behind each label."""

from typing import Any

import numpy as np
import streamlit as st

from pages.attention.chosen_head import HEAD, LAYER, board_words, large_head, on_head, show_large, show_layer_and_head
from pages.attention.figures import tendency_board
from pages.kit.asking import ask_once
from pages.kit.controls import Choice, Slider, Values
from pages.kit.exports import export_matrix
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.waiting import awaited
from pages.language import language_of, strings, t
from pages.room import Part
from transformer_core.analysis.attention.tendencies import (
    BROAD_FROM,
    NONE,
    PLACES,
    TENDENCIES,
    Tendencies,
    labelled,
    steadiness,
    tendencies_of_reviews,
    tendencies_of_text,
)

SAMPLE = Choice(
    "attention_sample",
    ("en", "zh"),
    label="attention.sample",
    words="attention.sample_{}",
    default=lambda view: language_of(view.encoding.text) or "en",
)
THRESHOLD = Slider("attention_threshold", 0.05, 0.6, 0.2, step=0.05, label="attention.threshold", kind=float)
SENTENCES = 48
MOST_CLAIMS = 60


def short_names() -> dict[int, str]:
    """Return the short name of each tendency by its number, "" for none."""
    return {NONE: "", **{place: t(f"tendency_short.{name}") for place, name in enumerate(TENDENCIES)}}


def _picture(view: View, values: Values) -> Live:
    """Return every head's scores here and on the sample, and the chosen head's weights."""
    layer, head = values[LAYER], values[HEAD]
    here = ask_once(tendencies_of_text, prompt=view.prompt)
    sample = ask_once(tendencies_of_reviews, **_sample(view, values[SAMPLE]))
    words = {
        **strings("attention_tendencies"),
        **board_words(),
        "here": t("attention.here"),
        "sample": t("attention.on_sample", count=SENTENCES),
    }
    board = tendency_board(
        here.value.scores,
        sample.value.scores,
        [t(f"tendency.{name}") for name in TENDENCIES],
        words,
        chosen=(layer, head),
    )
    large = large_head("head_tendency", view, values)
    version = f"{layer}.{head}|{view.encoding.text}"
    return Live((Picture("tendencies", board, here, pins=False, version=version), large))


def _sample(view: View, language: str) -> dict[str, Any]:
    """Return what the sample is: reviews in a language."""
    return {"bundle": view.bundle, "language": language, "sentences": SENTENCES}


def _show(view: View) -> None:
    """Show every head's scores here and on the sample, and the label that each earns."""
    head_place, sample_place, threshold_place = st.columns([3, 1.4, 2], vertical_alignment="bottom")
    with head_place:
        show_layer_and_head(view)
    with sample_place:
        asked = _sample(view, SAMPLE.show(view))
    with threshold_place:
        least = THRESHOLD.show()
    sample = awaited(tendencies_of_reviews, t("attention.reading"), key="attention_sample", height=420, **asked)
    if sample is None:
        return
    board, large = TENDENCIES_PART.live(view).matrices
    here, n_heads = board.answer, view.bundle.config.n_heads
    TENDENCIES_PART.follow(view)
    board_place, claim_place = st.columns([1.1, 1], gap="large")
    with board_place:
        show_picture(board, on_cell=lambda cell: on_head(*divmod(cell[0], n_heads)) if cell else None)
        here_place, sample_place = st.columns(2)
        with here_place:
            st.caption(t("attention.here"))
            export_matrix(board.figure, here, key="tendencies_here")
        with sample_place:
            st.caption(t("attention.on_sample", count=SENTENCES))
            export_matrix(board.figure, sample, key="tendencies_sample")
    with claim_place:
        show_claims(here.value, sample.value, least)
        show_large(large)


def show_claims(here: Tendencies, sample: Tendencies, least: float) -> None:
    """Show the heads that earn a label here or on the sample, each with its scores and how steady its label is."""
    ours, theirs = labelled(here.scores, least), labelled(sample.scores, least)
    steady = steadiness(sample, least)
    st.subheader(t("attention.labels"), anchor=False)
    st.markdown(t("attention.claim", least=f"{least:.2f}", broad=f"{BROAD_FROM:.0%}"))
    count = ours.size
    agreed = t("attention.labels_agree", same=int((ours == theirs).sum()), count=count, sentences=SENTENCES)
    st.markdown(f"**{agreed}**")
    claimed = np.argwhere((ours != NONE) | (theirs != NONE)).tolist()
    rows = [
        (
            f"{layer}.{head}",
            _named(here.scores[layer, head], int(ours[layer, head]), least),
            _named(sample.scores[layer, head], int(theirs[layer, head]), least),
            f"{steady[layer, head]:.0%}",
        )
        for layer, head in claimed[:MOST_CLAIMS]
    ]
    names = (
        t("attention_tendencies.heads"),
        t("attention.here"),
        t("attention.on_sample", count=SENTENCES),
        t("attention.steady"),
    )
    if rows:
        st.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    st.caption(t("attention.unclaimed", count=count - len(claimed), all=count))


def _named(scores: np.ndarray, label: int, least: float) -> str:
    """Return a head's label with its score, and its other places from the threshold up, in Markdown."""
    if label == NONE:
        return ":gray[" + t("tendency_short.none") + "]"
    names = short_names()
    others = [place for place in range(len(PLACES)) if scores[place] >= least and place != label]
    others.sort(key=lambda place: -scores[place])
    return ", ".join([f"**{names[label]}** {scores[label]:.2f}", *(f"{names[at]} {scores[at]:.2f}" for at in others)])


TENDENCIES_PART = Part("attention", "tendencies", _show, _picture, (LAYER, HEAD, SAMPLE))
