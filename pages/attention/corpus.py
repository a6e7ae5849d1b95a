"""Heads over a corpus: every head of the model by two measures, and the strongest rows of the chosen one as text."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from pages.attention.chosen_head import HEAD, LAYER, on_head
from pages.attention.induction import show_induction, show_learned
from pages.figures.charts import HUES
from pages.figures.corpus_heads import corpus_scatter
from pages.figures.looked_words import looked_words
from pages.kit.asking import Answer
from pages.kit.charts import clickable
from pages.kit.controls import Choice, Slider, show_in_columns
from pages.kit.experiment import say
from pages.kit.glossary import show_prose
from pages.kit.header import View, choose_text
from pages.kit.models import model_names, open_or_say
from pages.kit.navigation import open_page
from pages.kit.number_format import markdown_table, minus, significant
from pages.kit.text_set import show_set
from pages.kit.url import keep, remember, set_choice
from pages.kit.waiting import awaited_or_why
from pages.language import joined, plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.corpus.head_measures import (
    FEWEST_OFF,
    MEASURES,
    OFF_WORK,
    READ_WORK,
    CorpusHeads,
    heads_over_corpus,
)
from transformer_core.analysis.lab.heads_off import attentions

MOST_TEXTS = 96
ROWS = 5  # of those that the answer has, shown at once
SIGNED = ("copying", "effect")
NOT_OF_CROSS = ("previous", "next", "same", "repeated", "distance")  # positions of another text are no neighbours
REASONS = ("copying", "effect", "induction", "next", "cross")  # why a head has no number by a measure
OWN = "own"


def _up(view: View) -> str:
    return "entropy" if view.bundle.reader.asks is None else "effect"


ACROSS = Choice(
    "corpus_across", MEASURES, label="attention.corpus_across", words="measure.{}", default="previous", form="list"
)
UP = Choice("corpus_up", MEASURES, label="attention.corpus_up", words="measure.{}", default=_up, form="list")
KIND = Choice("corpus_kind", lambda view: tuple(attentions(view.bundle)), label="lab.kind", words="lab.kind_{}")
MODEL = Choice(
    "corpus_model",
    lambda view: {OWN: view.bundle.name, **model_names(None, ("translation",))},
    label="attention.corpus_of",
    form="list",
)
TEXTS = Slider("corpus_texts", 12, MOST_TEXTS, 48, step=12, label="attention.corpus_texts")


def written(name: str, value: float) -> str:
    """Write what a measure came to, – for nothing."""
    if not np.isfinite(value):
        return "–"
    if name == "distance":
        return f"{value:.1f}"
    return minus(f"{value:+.3f}") if name in SIGNED else f"{value:.3f}"


def head_name(found: CorpusHeads, place: int) -> str:
    """Return a head's name: its layer and number, after its kind where the model has several kinds of attention."""
    kind, layer, head = found.heads[place]
    number = f"{layer}.{head}"
    return number if len({one for one, _, _ in found.heads}) == 1 else f"{t(f'lab.kind_{kind}')} {number}"


def _show(view: View) -> None:
    """Show the model, the set and the axes, all heads, the chosen one, and where induction comes from."""
    model_place, set_place = st.columns([1, 3], vertical_alignment="bottom", gap="medium")
    with model_place:
        name = MODEL.show(view)
        bundle = view.bundle if name == OWN else open_or_say(name)
    if bundle is None:
        return
    view = replace(view, bundle=bundle)  # a translator, which the page's other parts do not read; no text is needed
    if not attentions(view.bundle):
        st.info(t("lab.no_heads"), icon=":material/info:")
        return
    with set_place:
        among = show_set(view)
    across, up, texts = show_in_columns(view, ACROSS, UP, TEXTS, widths=[1, 1, 1], vertical_alignment="bottom")
    if among is None:
        return
    asked: dict[str, Any] = {"bundle": view.bundle, "among": among, "texts": texts}
    answer = awaited_or_why(heads_over_corpus, t("attention.corpus_reading"), key="corpus", height=440, **asked)
    if answer is None:
        return
    place = _chosen(view, answer.value)
    picture, head = st.columns(2, gap="large")
    with picture:
        _show_heads(view, answer, across, up, place)
    with head:
        _show_measures(view, answer.value, place)
    _show_rows(view, answer.value, place)
    with st.expander(t("attention.corpus_how"), icon=":material/function:"):
        show_prose(section("attention", "corpus_measures"))
        bounds = {"read": significant(READ_WORK), "off": significant(OFF_WORK), "fewest": FEWEST_OFF}
        say(t("attention.corpus_bound", **bounds), small=True)
    show_induction(view, answer)
    show_learned(view)


def _chosen(view: View, found: CorpusHeads) -> int:
    return found.place(KIND.read(view), LAYER.read(view), HEAD.read(view))


def _show_heads(view: View, answer: Answer[CorpusHeads], across: str, up: str, place: int) -> None:
    """Show all heads by both measures, and say what was read and what was left out."""
    found = answer.value
    axes = [MEASURES.index(across), MEASURES.index(up)]
    words = strings("attention_corpus") | {"across": _title(across), "up": _title(up)}
    layers = [str(layer) for _, layer, _ in found.heads]
    names = [head_name(found, one) for one in range(len(found.heads))]
    bounds = found.bounds[:, axes].transpose(1, 0, 2)
    values = found.values[axes]
    shown = int(np.isfinite(values).all(0).sum())
    if shown:
        chart = corpus_scatter(values, bounds, names, layers, words, chosen=place, beside=found.chance[axes, place])

        def choose(one: int) -> None:
            kind, layer, head = found.heads[one]
            on_head(layer, head)
            if kind != KIND.read(view):
                KIND.take(kind, view)

        label = t("attention.corpus_label", across=t(f"measure.{across}"), up=t(f"measure.{up}"))
        clickable(chart, answer, key="corpus_heads", stem="heads_over_corpus", label=label, on_place=choose)
    lacking = len(found.heads) - shown
    said = [_read_of(found)]
    said += [t("attention.corpus_lacking", count=lacking, all=len(found.heads))] if lacking else []
    say(joined(*said, *_why_lacking(found, range(len(found.heads)), (across, up))), small=True)


def _why_lacking(found: CorpusHeads, places: Iterable[int], names: Iterable[str]) -> list[str]:
    """Return why measures say nothing of some of the heads, a sentence each."""
    lacking = [(name, found.heads[place][0]) for place in places for name in names if not found.says(name, place)]
    why = dict.fromkeys("cross" if kind == "cross" and name in NOT_OF_CROSS else name for name, kind in lacking)
    return [t(f"measure_lacks.{reason}", fewest=FEWEST_OFF) for reason in why if reason in REASONS]


def _title(name: str) -> str:
    """Return a measure's name with its unit."""
    return joined(t(f"measure.{name}"), f"({t(f'measure_unit.{name}')})")


def _read_of(found: CorpusHeads) -> str:
    """Return how much was read, and what was left out."""
    tokens = sum(map(len, found.tokens))
    said = [t("attention.corpus_read", texts=len(found.texts), tokens=f"{tokens:,}")]
    said += [t("attention.corpus_cut", count=found.cut)] if found.cut else []
    said += [t("attention.corpus_left_out", count=found.left_out)] if found.left_out else []
    if found.off_texts:
        said.append(t("attention.corpus_off", texts=found.off_texts))
    return joined(*said)


def _show_measures(view: View, found: CorpusHeads, place: int) -> None:
    """Show the controls of the chosen head, and all its measures with bounds, chance and count."""
    if len(KIND.options_of(view)) > 1:
        KIND.show(view)
    show_in_columns(view, LAYER, HEAD, widths=[1, 2])
    rows = []
    for at, name in enumerate(MEASURES):
        value, (low, high) = found.values[at, place], found.bounds[:, at, place]
        between = f"{written(name, low)} … {written(name, high)}" if np.isfinite(low) else "–"
        count = f"{found.counts[at, place]:,}" if np.isfinite(value) else "–"
        numbers = (written(name, value), between, written(name, found.chance[at, place]), count)
        rows.append((t(f"measure.{name}"), *numbers))
    names = ("measure", "value", "bounds", "uniform", "count")
    say(markdown_table([t(f"attention.corpus_{name}") for name in names], rows, right=4))
    say(
        joined(t("attention.corpus_table_note", sequences=found.sequences), *_why_lacking(found, [place], MEASURES)),
        small=True,
    )


def _show_rows(view: View, found: CorpusHeads, place: int) -> None:
    """Show the chosen head's strongest rows as text, each with the way to its matrix."""
    kind, layer, head = found.heads[place]
    st.subheader(t("attention.corpus_rows", name=head_name(found, place)), anchor=False)
    note = "attention.corpus_rows_cross" if kind == "cross" else "attention.corpus_rows_note"
    say(t(note, texts=len(found.texts)), small=True)
    for row in range(min(ROWS, found.row_text.shape[1])):
        text = int(found.row_text[place, row])
        if text < 0:
            break
        queries, keys = found.row_tokens(place, row)
        query, key, weight = (
            int(found.row_query[place, row]),
            int(found.row_key[place, row]),
            found.row_weight[place, row],
        )
        weights = found.row_weights[place, row][: len(keys)].tolist()
        numbers = {"query": plain(queries[query]), "seen": plain(keys[key]), "weight": f"{weight:.3f}"}
        places = {"number": text + 1, "query_place": query, "seen_place": key}
        words_place, way_place = st.columns([5, 1.2], vertical_alignment="center")
        with words_place:
            say(t("attention.corpus_row", **numbers, **places), small=True)
            label, said = t("attention.corpus_row_label", number=text + 1), t("attention.corpus_row_token")
            own = None if kind == "cross" else query
            st.html(looked_words(keys, weights, HUES["weights"], label=label, said=said, query=own))
        with way_place:
            if kind == "cross":
                _show_translation(view.bundle.name, found.texts[text], layer, head, row)
            elif view.bundle.kind != "translation":
                _show_way(found.texts[text], layer, head, (query, key), row)


def _show_way(text: str, layer: int, head: int, cell: tuple[int, int], row: int) -> None:
    """Show the button that opens a row's text and head on the part with all heads."""
    about = {"key": f"corpus_open_{row}", "on_click": _open, "args": (text, layer, head, cell)}
    st.button(t("attention.corpus_open"), icon=":material/grid_on:", **about)


def _show_translation(model: str, text: str, layer: int, head: int, row: int) -> None:
    """Show the button that opens a row's text and cross-attention head on Translation."""
    if st.button(t("attention.corpus_translate"), icon=":material/translate:", key=f"corpus_open_{row}"):
        about = {"translation_part": "cross", "translation_over": "head", "layer": str(layer), "head": str(head)}
        for name, value in ({"model": model, "text": text} | about).items():
            keep(name, value, "")
        open_page("translation")


def _open(text: str, layer: int, head: int, cell: tuple[int, int]) -> None:
    on_head(layer, head)
    choose_text(text)
    set_choice("attention_part", "heads")
    remember("cell", f"{cell[0]}.{cell[1]}")


CORPUS = Part("attention", "corpus", _show, sites=None)
