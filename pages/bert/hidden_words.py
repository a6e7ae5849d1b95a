"""The hidden words of the BERT page: the chips that hide them, and the sentence with its masks."""

import re
from dataclasses import replace
from html import escape
from typing import Any

import streamlit as st

from pages.ui.header import View
from pages.ui.language import plain, t
from pages.ui.url import choose_from_list, held, keep, put, widget_key
from transformer_core.analysis.bert.masked_words import Hidden, encode_masks, hidden_text, own_places
from transformer_core.text import Encoding

HIDDEN, MASK_PLACE = "bert_hidden", "bert_mask"
NOTHING = "none"
LEAST_TOKENS = 4
CODE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){0,127}")


def asked_of(view: View) -> dict[str, Any]:
    """Return the model and the text as keyword arguments, with room for one token of the text at least."""
    return view.asked | {"n_tokens": max(LEAST_TOKENS, len(view.encoding))}


def _code(places: tuple[int, ...]) -> str:
    return ".".join(map(str, places)) or NOTHING


def _usual(encoding: Encoding) -> tuple[int, ...]:
    """Return the places hidden by default: the last word, or none where the text itself has a [MASK]."""
    own = own_places(encoding)
    typed = any(special and end for special, (_, end) in zip(encoding.special, encoding.offsets, strict=True))
    words = [place for place in own if any(map(str.isalnum, encoding.labels[place]))]
    return () if typed or not own else ((words or own)[-1],)


def _show_chips(encoding: Encoding, own: tuple[int, ...], usual: tuple[int, ...]) -> tuple[int, ...]:
    """Show the tokens of the text as chips and return the places that are hidden.

    Chips that a person has not touched follow the default of a new text.
    """

    def read(asked: Any) -> list[int] | None:
        if isinstance(asked, list):
            return [place for place in asked if place in own]
        if asked == NOTHING:
            return []
        places = sorted(set(map(int, str(asked).split(".")))) if CODE.fullmatch(str(asked)) else []
        return places if places and set(places) <= set(own) else None

    key = widget_key(HIDDEN)
    before = st.session_state.get(f"{key} usual")
    if before is not None and st.session_state.get(key) == before:
        put(HIDDEN, list(usual))
    st.session_state[f"{key} usual"] = list(usual)
    key, places = held(HIDDEN, list(usual), read, f"{own[0]} … {own[-1]}" if own else NOTHING)
    chosen = st.pills(
        t("bert.hide"),
        own,
        selection_mode="multi",
        default=places,
        format_func=lambda place: plain(encoding.labels[place]),
        key=key,
        wrap=True,
    )
    return tuple(sorted(chosen))


def choose_hidden(view: View) -> Hidden | None:
    """Show the sentence as chips to click and return what is hidden; None where nothing is."""
    if view.bundle.tokenizer.mask_id is None:
        st.info(t("bert.no_mask_token", name=plain(view.bundle.name)), icon=":material/info:")
        return None
    asked = asked_of(view)
    encoding = encode_masks(view.bundle, asked["text"], asked["n_tokens"])
    own, usual = own_places(encoding), _usual(encoding)
    hidden = _show_chips(encoding, own, usual)
    keep(HIDDEN, _code(hidden), _code(usual))
    read = hidden_text(view.bundle, asked["text"], asked["n_tokens"], hidden)
    if not read.places:
        st.info(t("bert.hide_one"), icon=":material/visibility_off:")
        return None
    return read


def has_words(read: Hidden) -> bool:
    """Tell whether the text has a token that can be hidden by itself; where not, say so."""
    if own_places(read.original):
        return True
    st.info(t("bert.no_word"), icon=":material/info:")
    return False


def hide_only(place: int) -> None:
    """Hide this token alone; only in a callback."""
    put(HIDDEN, [place])


def chosen_places(read: Hidden) -> tuple[int, ...]:
    """Return the places that were chosen, without the masks typed in the text."""
    return tuple(place for place, id_ in zip(read.places, read.true_ids, strict=True) if id_ is not None)


def called(read: Hidden, place: int) -> str:
    """Return the name of a mask in a list: its place, and the token that it hides."""
    known = read.true_ids[read.places.index(place)] is not None
    return f"{place} · {read.original.labels[place]}" if known else f"{place} · {t('bert.typed_mask')}"


def choose_mask(read: Hidden) -> int:
    """Return the place of the chosen mask; where there are several, show a list of them."""
    if len(read.places) == 1:
        return read.places[0]
    options = {str(place): called(read, place) for place in read.places}
    return int(choose_from_list(t("bert.which_mask"), options, name=MASK_PLACE) or read.places[0])


def _mask(place: int) -> str:
    style = "background:#8a55d0;color:#fff;border-radius:6px;padding:0.05em 0.45em;font-size:0.85em;font-weight:600"
    return f'<span style="{style}">[MASK]<sub style="font-size:0.65em"> {place}</sub></span>'


def show_sentence(read: Hidden) -> None:
    """Show the sentence with its masks, each with its place."""
    text, parts, end = read.original.text, [], 0
    for place in read.places:
        start, stop = read.original.offsets[place]
        parts += [escape(text[end:start]), _mask(place)]
        end = stop
    parts.append(escape(text[end:]))
    st.html(f'<div dir="auto" style="font-size:1.35rem;line-height:2.1;margin:0.1em 0">{"".join(parts)}</div>')


def masked_view(view: View, read: Hidden) -> View:
    """Return the view of the masked sentence; its text spells [MASK] where that gives the same tokens."""
    text, parts, end = read.original.text, [], 0
    spelled = view.bundle.tokenizer.token_of(view.bundle.tokenizer.mask_id or 0)
    for place in read.places:
        start, stop = read.original.offsets[place]
        parts += [text[end:start], spelled]
        end = stop
    whole = view.bundle.tokenizer.encode("".join([*parts, text[end:]]), max_len=asked_of(view)["n_tokens"])
    return replace(view, encoding=whole if whole.ids == read.masked.ids else read.masked)
