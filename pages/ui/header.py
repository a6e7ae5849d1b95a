"""The header that every page shares: text, model and language, each kept in the URL.

Read next: matrix.py.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

import streamlit as st

from pages.ui.language import LANGUAGES, language, plain, t
from pages.ui.model_choice import choose_model, tell_other_kind
from pages.ui.models import open_bundle
from pages.ui.url import choose, write
from transformer_core.checkpoints import Bundle, BundleError
from transformer_core.text import Encoding

DEFAULT_TEXT = "I expected a masterpiece, but the story was dull and the ending was a bore."
MOST_CHARACTERS = 2_000
MOST_TOKENS = 128
MOST_UNKNOWN = 0.3  # from this part of the tokens on, a verdict rests on too little to be left without a word
FIRST_CJK = 0x2E80  # from here on, scripts that write no blanks between words


@dataclass(frozen=True)
class View:
    """What the header chose: a model and the encoded text that it reads."""

    bundle: Bundle
    encoding: Encoding

    @property
    def asked(self) -> dict[str, Any]:
        """The model and the text, or both texts of a pair, as functions of the library take them, by keyword."""
        pair = {} if self.encoding.pair is None else {"pair": self.encoding.pair}
        return {"bundle": self.bundle, "text": self.encoding.text, "n_tokens": len(self.encoding)} | pair


def header(*, kinds: tuple[str, ...] = ("classifier",), default: str | None = None, example: str | None = None) -> View:
    """Show the controls and return what they chose; where nothing can be read, say why and end the page.

    Args:
        kinds: of model that the page can read, the likeliest first; others are not listed.
        default: the model to begin with, by default the first of the first kind.
        example: the text to begin with, by default the one that all pages share.
    """
    text_place, model_place, language_place = st.columns([5.4, 1.6, 2.0], vertical_alignment="bottom")
    with language_place:
        choose(t("header.language"), LANGUAGES, name="lang", default="en", collapsed=True, always=True)
    if language() != st.session_state.get("framed", language()):
        st.rerun()  # where the page is a fragment, the frame around it speaks the old language still
    with text_place:
        text = write(t("header.text"), name="text", default=DEFAULT_TEXT if example is None else example)
    with model_place:
        model = choose_model(kinds, default)
    if model is None:
        _end(t("model.none", kinds=", ".join(t(f"kind.{kind}") for kind in kinds)))
    tell_other_kind(model)
    return View(*_read(model, text))


def _read(name: str, text: str) -> tuple[Bundle, Encoding]:
    try:
        bundle = open_bundle(name)
    except BundleError as error:
        _end(t("model.broken", name=plain(name), error=plain(str(error))))
    if not text.strip():
        _end(t("text.empty"))
    if len(text) > MOST_CHARACTERS:
        _end(t("text.too_long", count=f"{len(text):,}", most=f"{MOST_CHARACTERS:,}"))
    try:
        encoding = bundle.tokenizer.encode(text)
    except ValueError as error:
        _end(t("text.unreadable", error=plain(str(error))))
    if not len(encoding):
        _end(t("text.nothing_known"))
    encoding = _window(bundle, encoding)
    _warn_of_unknown(encoding)
    return bundle, encoding


def _warn_of_unknown(encoding: Encoding) -> None:
    own = [
        unknown for unknown, special in zip(encoding.unknown, encoding.special, strict=True) if unknown or not special
    ]
    if own and sum(own) / len(own) >= MOST_UNKNOWN:
        st.warning(t("text.unknown", count=sum(own), all=len(own)), icon=":material/translate:")


def _window(bundle: Bundle, encoding: Encoding) -> Encoding:
    most = min(MOST_TOKENS, bundle.config.max_len)
    if len(encoding) <= most:
        return encoding
    starts = [start for start, end in encoding.offsets if end]  # of the text's own tokens, not the template's
    last = len(encoding) - most
    if st.session_state.get("start", 0) > last:
        st.session_state.start = last
    start = st.slider(t("text.window", count=len(encoding), most=most), 0, last, 0, key="start", bind="query-params")
    window = bundle.tokenizer.encode(encoding.text[word_start(encoding.text, starts[start]) :], max_len=most)
    return bundle.tokenizer.encode(whole_words(window), max_len=most)


def whole_words(cut: Encoding) -> str:
    """Return the text of a cut encoding up to its last whole word; up to its last token where that is one long word."""
    if not cut.truncated:
        return cut.text
    end = max(end for _, end in cut.offsets)
    return cut.text[: word_start(cut.text, end)].rstrip() or cut.text[:end]


def word_start(text: str, place: int) -> int:
    """Move a place back to where its word starts, so that the window has the whole text's tokens."""
    while place > 0 and _is_inside_word(text[place - 1]) and _is_inside_word(text[place]):
        place -= 1
    return place


def _is_inside_word(character: str) -> bool:
    return character.isalnum() and ord(character) < FIRST_CJK


def _end(message: str) -> NoReturn:
    st.info(message, icon=":material/info:")
    st.stop()
