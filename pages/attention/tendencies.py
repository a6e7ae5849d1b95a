"""What each head tends to look at, on this sentence and on a sample of others, with the score behind each label."""

from typing import Any

import numpy as np
import streamlit as st

from pages.attention.chosen_head import board_words, choose_layer_and_head, large_head, on_cell, read_heads
from pages.attention.figures import tendency_board
from pages.ui.asking import ask_once
from pages.ui.exports import export_matrix
from pages.ui.header import View
from pages.ui.language import language_of, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.pickers import chosen_layer_and_head, head_choices, on_head
from pages.ui.url import choose, chosen_option, current, read_number, slide
from pages.ui.waiting import awaited
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

LANGUAGES = ("en", "zh")
SENTENCES = 48
THRESHOLD = 0.2
MOST_CLAIMS = 60
LOWEST, HIGHEST, STEP = 0.05, 0.6, 0.05


def short_names() -> dict[int, str]:
    """Return the short name of each tendency by its number, "" for none."""
    return {NONE: "", **{place: t(f"tendency_short.{name}") for place, name in enumerate(TENDENCIES)}}


def threshold() -> float:
    """Return the least score of a tendency: the URL's, or the default if that is missing or out of range."""
    value = read_number(current("attention_threshold"), LOWEST, HIGHEST)
    return THRESHOLD if value is None else value


def live_tendencies(view: View) -> Live:
    """Return every head's scores here and on the sample, and the chosen head's weights."""
    layer, head = chosen_layer_and_head(view)
    here = ask_once(tendencies_of_text, **view.asked)
    sample = ask_once(tendencies_of_reviews, **_sample(view))
    words = {
        **strings("attention_tendencies"),
        "here": t("attention.here"),
        "sample": t("attention.on_sample", count=SENTENCES),
    }
    board = tendency_board(
        here.value.scores,
        sample.value.scores,
        [t(f"tendency.{name}") for name in TENDENCIES],
        words,
        board_words(),
        chosen=(layer, head),
        version=f"{layer}.{head}|{view.encoding.text}",
    )
    answer = read_heads(view, layer, head)
    large = large_head(view, answer.value, layer, head, "weights")
    return Live((Picture("tendencies", board, here, pins=False), Picture("head_tendency", large, answer, pins=False)))


def _sample(view: View) -> dict[str, Any]:
    """Return what the sample is: reviews in the chosen language, by default the text's."""
    language = chosen_option("attention_sample", LANGUAGES, default=_spoken(view))
    return {"bundle": view.bundle, "language": language, "sentences": SENTENCES}


def _spoken(view: View) -> str:
    return language_of(view.encoding.text) or "en"


def show_tendencies(view: View) -> None:
    """Show every head's scores here and on the sample, and the label that each earns."""
    head_place, sample_place, threshold_place = st.columns([3, 1.4, 2], vertical_alignment="bottom")
    with head_place:
        choose_layer_and_head(view)
    with sample_place:
        languages = {name: t(f"attention.sample_{name}") for name in LANGUAGES}
        language = choose(t("attention.sample"), languages, name="attention_sample", default=_spoken(view))
    with threshold_place:
        least = slide(
            t("attention.threshold"), LOWEST, HIGHEST, name="attention_threshold", default=THRESHOLD, step=STEP
        )
    sample = awaited(tendencies_of_reviews, t("attention.reading"), key="attention_sample", height=420, **_sample(view))
    if sample is None:
        return
    board, large = (one for one in live_tendencies(view).pictures if isinstance(one, Picture))
    here, n_heads = board.answer, view.bundle.config.n_heads
    choices = head_choices(view) | {"attention_sample": (LANGUAGES, language)}
    follow_finger("attention", "tendencies", view, choices=choices)
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
        show_picture(large, on_cell=on_cell)
        export_picture(large)


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
            _said(here.scores[layer, head], int(ours[layer, head]), least),
            _said(sample.scores[layer, head], int(theirs[layer, head]), least),
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


def _said(scores: np.ndarray, label: int, least: float) -> str:
    """Return a head's label with its score, and its other places from the threshold up, in Markdown."""
    if label == NONE:
        return ":gray[" + t("tendency_short.none") + "]"
    names = short_names()
    others = [place for place in range(len(PLACES)) if scores[place] >= least and place != label]
    others.sort(key=lambda place: -scores[place])
    return ", ".join([f"**{names[label]}** {scores[label]:.2f}", *(f"{names[at]} {scores[at]:.2f}" for at in others)])
