"""The film of a run as it is computed, and the text that is followed through it."""

from collections.abc import Sequence

import streamlit as st

from pages.film.mount import MOST_STEP, FilmAsk, Method, show_film
from pages.kit.controls import Text
from pages.kit.glossary import show_prose
from pages.kit.header import DEFAULT_TEXT
from pages.kit.models import READERS, name_of_moment, prefer_model
from pages.kit.navigation import open_page
from pages.kit.runs import is_live, learned_words
from pages.kit.url import current, keep, set_choice, whole_number
from pages.language import section, t
from pages.train.data import begin_with
from transformer_core.training.runs.store.run_store import RunStore

RECURRENT = ("seq2seq", "lm")  # the kinds that the page on recurrent models reads
LABELS = {
    "classifier": "train.followed",
    "translation": "train.followed_letters",
    "pairs": "train.followed_sentence",
    "gpt": "train.followed_begin",
    "bert": "train.followed_hidden",
}


def followed_text(store: RunStore) -> str:
    """Let a person type the text that is followed through a run, and return it.

    That of a classifier of the app's English reviews is the sentence of all pages; others begin with a text that the
    run held out.
    """
    kind, source = store.spec.data.kind, store.spec.data.source
    if kind == "classifier":
        usual = DEFAULT_TEXT
        if source != "reviews" or store.spec.data.language != "en":
            usual = store.facts().get("prompt", "")
        return Text[str]("text", usual, label=LABELS[kind]).show()
    kind = source if source == "pairs" else kind
    return Text[str](f"probe_{kind}", store.facts().get("prompt", ""), label=LABELS[kind]).show()


METHODS: Sequence[Method] = ("tsne", "pca")


def method_chosen() -> Method:
    """Return the method of the map that the page shows."""
    asked = current("map")
    return METHODS[METHODS.index(asked)] if asked in METHODS else METHODS[0]


def _viewed(frame: int | None, step: int | None, method: Method) -> None:
    keep("frame", "" if frame is None else str(frame), "")
    keep("step", "" if step is None else str(step), "")
    keep("map", method, METHODS[0])


def _answer(asked: FilmAsk, stores: tuple[RunStore, ...]) -> None:
    if asked.action == "branch":
        begin_with(asked.run, asked.frame)
        open_page("train")
    store = next(store for store in stores if store.id == asked.run)
    pages = dict.fromkeys(READERS, "attention") | dict.fromkeys(RECURRENT, "before") | {"translation": "translation"}
    page = pages.get(store.spec.kind)
    if page is None:
        st.toast(t("train.not_read"), icon=":material/info:")
        return
    name = name_of_moment(asked.run, asked.frame)
    prefer_model(name)
    set_choice("model", name)
    open_page(page, {**st.query_params.to_dict(), "model": name})  # the link must open the same moment


def follow_run(*stores: RunStore, text: str) -> None:
    """Show the film of one run, or of two on one scrubber, with a text followed through both."""
    learned = stores[0].spec
    show_prose(section("train", f"film_{'pairs' if learned.data.source == 'pairs' else learned.kind}"), small=True)
    asked = show_film(
        [(store.id, store.spec.name) for store in stores],
        key=f"film of {len(stores)}",
        learned=[learned_words(store.spec.data) for store in stores],
        followed_text=text,
        frame=whole_number(current("frame"), MOST_STEP),
        step=whole_number(current("step"), MOST_STEP),
        method=method_chosen(),
        turn=" ".join(f"{store.id} {is_live(store.status())}" for store in stores),
        on_view=_viewed,
    )
    if asked is not None:
        _answer(asked, stores)
