"""What the parts of the BERT page share: hidden words, the sentence as it is read, and the second sentence."""

import re
from dataclasses import replace
from html import escape
from typing import Any

import streamlit as st

from pages.glass.box import under_the_glass
from pages.ui.header import MOST_CHARACTERS, MOST_TOKENS, View
from pages.ui.language import plain, t
from pages.ui.last_text import in_words, read_and_tell, require_length
from pages.ui.url import choose_from_list, held, keep, put, text_input, widget_key
from transformer_core.analysis.bert.masked_words import Hidden, encode_masks, hidden_text, own_places
from transformer_core.analysis.bert.sentence_pairs import encode_pair
from transformer_core.text import Encoding

EXAMPLE = "A man in a red shirt is riding a horse."
SECOND = "A cowboy on a brown horse is outside."
HIDDEN, MASK_PLACE = "bert_hidden", "bert_mask"
NOTHING = "none"
LEAST_TOKENS = 4
CODE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){0,127}")


def asked_of(view: View) -> dict[str, Any]:
    """Return the model and the text by keyword, with room for a token at least."""
    return view.asked | {"n_tokens": max(LEAST_TOKENS, len(view.encoding))}


def _usual(encoding: Encoding) -> tuple[int, ...]:
    """Return what is hidden where nobody chose: the last word, or nothing where the text has a mask of its own."""
    own = own_places(encoding)
    typed = any(special and end for special, (_, end) in zip(encoding.special, encoding.offsets, strict=True))
    words = [place for place in own if any(map(str.isalnum, encoding.labels[place]))]
    return () if typed or not own else ((words or own)[-1],)


def _show_chips(encoding: Encoding, own: tuple[int, ...], usual: tuple[int, ...]) -> tuple[int, ...]:
    """Show the tokens of the text itself as chips and return those that are hidden.

    Where a person has not touched them, the usual ones of another text are hidden in its turn.
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
    """Show the sentence as chips of which a click hides one, and return what is hidden; None where nothing can be."""
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


def _code(places: tuple[int, ...]) -> str:
    return ".".join(map(str, places)) or NOTHING


def hide_only(place: int) -> None:
    """Hide one token in place of all that are hidden; only in a callback."""
    put(HIDDEN, [place])


def chosen_places(read: Hidden) -> tuple[int, ...]:
    """Return the places that were chosen, without the masks that the text spells out."""
    return tuple(place for place, id_ in zip(read.places, read.true_ids, strict=True) if id_ is not None)


def called(read: Hidden, place: int) -> str:
    """Return what a mask is called in a list: its place, and what stood there."""
    known = read.true_ids[read.places.index(place)] is not None
    return f"{place} · {read.original.labels[place]}" if known else f"{place} · {t('bert.typed_mask')}"


def choose_mask(read: Hidden) -> int:
    """Show the list of masks where there are several, and return the place of the one chosen."""
    if len(read.places) == 1:
        return read.places[0]
    options = {str(place): called(read, place) for place in read.places}
    return int(choose_from_list(t("bert.which_mask"), options, name=MASK_PLACE) or read.places[0])


def show_sentence(read: Hidden) -> None:
    """Show the sentence as the model reads it, each mask with its place."""
    text, parts, end = read.original.text, [], 0
    for place in read.places:
        start, stop = read.original.offsets[place]
        parts += [escape(text[end:start]), _mask(place)]
        end = stop
    parts.append(escape(text[end:]))
    st.html(f'<div dir="auto" style="font-size:1.35rem;line-height:2.1;margin:0.1em 0">{"".join(parts)}</div>')


def _mask(place: int) -> str:
    style = "background:#8a55d0;color:#fff;border-radius:6px;padding:0.05em 0.45em;font-size:0.85em;font-weight:600"
    return f'<span style="{style}">[MASK]<sub style="font-size:0.65em"> {place}</sub></span>'


def masked_view(view: View, read: Hidden) -> View:
    """Return the view that reads the sentence with its masks, spelled out where that gives the same tokens."""
    text, parts, end = read.original.text, [], 0
    spelled = view.bundle.tokenizer.token_of(view.bundle.tokenizer.mask_id or 0)
    for place in read.places:
        start, stop = read.original.offsets[place]
        parts += [text[end:start], spelled]
        end = stop
    whole = view.bundle.tokenizer.encode("".join([*parts, text[end:]]), max_len=asked_of(view)["n_tokens"])
    return replace(view, encoding=whole if whole.ids == read.masked.ids else read.masked)


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Put what the part reads under the glass; ids that no text would give count as edited, and have no script."""
    encoding, n_tokens = view.encoding, max(LEAST_TOKENS, len(view.encoding))
    spelled = view.bundle.tokenizer.encode(encoding.text, encoding.pair, max_len=n_tokens)
    edits = {} if spelled.ids == encoding.ids else {"encoder.embedding.token_ids": lambda ids: ids}
    under_the_glass(view, sites=sites, edits=edits)


def most_tokens(view: View) -> int:
    """Return how many tokens of a pair are read at most."""
    return min(MOST_TOKENS, view.bundle.config.max_len)


def choose_second(view: View) -> Encoding | None:
    """Show the line for the second sentence and return the pair; None where there is none to judge, which is said."""
    if not view.bundle.config.pair_head:
        st.info(t("bert.no_pair_head", name=plain(view.bundle.name)), icon=":material/info:")
        return None
    second = text_input(t("bert.second"), name="bert_second", default=SECOND)
    pair = read_and_tell("bert_second", second, SECOND, lambda second: _paired(view, second))
    if pair is not None and pair.truncated:
        st.caption(t("bert.pair_cut", count=pair.truncated, most=most_tokens(view)))
    return pair


def _paired(view: View, second: str) -> Encoding:
    """Return both sentences as the model reads them.

    Raises:
        ValueError: the second one is empty, too long or cannot be read; in words for the page.
    """
    if not second.strip():
        raise ValueError(t("bert.second_empty"))
    require_length(second, MOST_CHARACTERS)
    with in_words():
        return encode_pair(view.bundle, view.encoding.text, second, most_tokens(view))


def asked_of_pair(view: View, pair: Encoding) -> dict[str, Any]:
    """Return the model and both sentences by keyword, as functions of the library take them."""
    return {"bundle": view.bundle, "text": view.encoding.text, "pair": pair.pair, "n_tokens": most_tokens(view)}
