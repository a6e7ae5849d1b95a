"""The hidden words of the BERT page: the chips that hide them, and the sentence with its masks."""

import re
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from pages.ui.header import View
from pages.ui.language import plain, t
from pages.ui.url import choose_from_list, chosen, held, keep, put, widget_key
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


def _read_places(own: tuple[int, ...], asked: Any) -> list[int] | None:
    """Return the places that the chips hold or a link names, None where those are not the text's own."""
    if isinstance(asked, list):
        return [place for place in asked if place in own]
    if asked == NOTHING:
        return []
    places = sorted(set(map(int, str(asked).split(".")))) if CODE.fullmatch(str(asked)) else []
    return places if places and set(places) <= set(own) else None


def _show_chips(encoding: Encoding, own: tuple[int, ...], usual: tuple[int, ...]) -> tuple[int, ...]:
    """Show the tokens of the text as chips and return the places that are hidden.

    Chips that a person has not touched follow the default of a new text.
    """

    key = widget_key(HIDDEN)
    before = st.session_state.get(f"{key} usual")
    if before is not None and st.session_state.get(key) == before:
        put(HIDDEN, list(usual))
    st.session_state[f"{key} usual"] = list(usual)
    key, places = held(HIDDEN, list(usual), partial(_read_places, own), f"{own[0]} … {own[-1]}" if own else NOTHING)
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
    encoding, own, usual = _maskable(view)
    hidden = _show_chips(encoding, own, usual)
    keep(HIDDEN, _code(hidden), _code(usual))
    read = _hide(view, hidden)
    if not read.places:
        st.info(t("bert.hide_one"), icon=":material/visibility_off:")
        return None
    return read


def chosen_hidden(view: View) -> Hidden:
    """Return what is hidden, without the chips."""
    _, own, usual = _maskable(view)
    return _hide(view, tuple(sorted(chosen(HIDDEN, list(usual), partial(_read_places, own), ""))))


def hidden_choice(view: View, read: Hidden) -> str:
    """Return the chips that are chosen as the URL has them, "" where those are the text's usual ones."""
    _, _, usual = _maskable(view)
    return "" if chosen_places(read) == usual else _code(chosen_places(read))


def _maskable(view: View) -> tuple[Encoding, tuple[int, ...], tuple[int, ...]]:
    """Return the text as the model reads it with its own masks, the places that can be hidden, and the usual ones."""
    asked = asked_of(view)
    encoding = encode_masks(view.bundle, asked["text"], asked["n_tokens"])
    return encoding, own_places(encoding), _usual(encoding)


def _hide(view: View, places: tuple[int, ...]) -> Hidden:
    asked = asked_of(view)
    return hidden_text(view.bundle, asked["text"], asked["n_tokens"], places)


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
    return f'<span style="{style};white-space:nowrap">[MASK]<sub style="font-size:0.65em"> {place}</sub></span>'


def sentence_of(read: Hidden) -> str:
    """Return the sentence with its masks, each with its place, as HTML."""
    text, parts, end = read.original.text, [], 0
    for place in read.places:
        start, stop = read.original.offsets[place]
        parts += [escape(text[end:start]), _mask(place)]
        end = stop
    parts.append(escape(text[end:]))
    return f'<div dir="auto" style="font-size:1.35rem;line-height:2.1;margin:0.1em 0">{"".join(parts)}</div>'


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
