"""The header that every page shares: text, model and language, each kept in the URL.

Read next: matrix.py.
"""

from dataclasses import dataclass
from typing import NoReturn

import streamlit as st

from pages.ui.language import LANGUAGES, t
from pages.ui.models import bundle_names, open_bundle
from pages.ui.url import choose, choose_from_list, write
from transformer_core.checkpoints import Bundle, BundleError
from transformer_core.text import Encoding

DEFAULT_TEXT = "I expected a masterpiece, but the story was dull and the ending was a bore."
MOST_CHARACTERS = 2_000
MOST_TOKENS = 128


@dataclass(frozen=True)
class View:
    """What the header chose: a model and the encoded text that it reads."""

    bundle: Bundle
    encoding: Encoding


def header() -> View:
    """Show the controls and return what they chose; where nothing can be read, say why and end the page."""
    text_place, model_place, language_place = st.columns([6, 1.6, 1.4], vertical_alignment="bottom")
    with language_place:
        choose(t("header.language"), LANGUAGES, name="lang", default="en", collapsed=True)
    with text_place:
        text = write(t("header.text"), name="text", default=DEFAULT_TEXT)
    with model_place:
        model = choose_from_list(t("header.model"), bundle_names(), name="model")
    return View(*_read(model, text))


def _read(name: str | None, text: str) -> tuple[Bundle, Encoding]:
    if name is None:
        _end(t("model.none"))
    try:
        bundle = open_bundle(name)
    except BundleError as error:
        _end(t("model.broken", name=name, error=error))
    if not text.strip():
        _end(t("text.empty"))
    if len(text) > MOST_CHARACTERS:
        _end(t("text.too_long", count=f"{len(text):,}", most=f"{MOST_CHARACTERS:,}"))
    try:
        encoding = bundle.tokenizer.encode(text)
    except ValueError as error:
        _end(t("text.unreadable", error=error))
    return bundle, _window(bundle, encoding)


def _window(bundle: Bundle, encoding: Encoding) -> Encoding:
    most = min(MOST_TOKENS, bundle.config.max_len)
    if len(encoding) <= most:
        return encoding
    starts = [start for (start, _), special in zip(encoding.offsets, encoding.special, strict=True) if not special]
    last = len(encoding) - most
    if st.session_state.get("start", 0) > last:
        st.session_state.start = last
    start = st.slider(t("text.window", count=len(encoding), most=most), 0, last, 0, key="start", bind="query-params")
    return bundle.tokenizer.encode(encoding.text[starts[start] :], max_len=most)


def _end(message: str) -> NoReturn:
    st.info(message, icon=":material/info:")
    st.stop()
