"""The hidden words of the BERT page: the chips that hide them, and the sentence with its masks."""

import re
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from pages.kit.controls import Choice, Control
from pages.kit.header import View
from pages.kit.url import chosen, held, keep
from pages.language import plain, t
from transformer_core.analysis.bert.masked_words import Hidden, encode_masks, hidden_text, own_places
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

NOTHING = "none"
LEAST_TOKENS = 4
CODE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){0,127}")


def prompt_of(view: View) -> Prompt:
    """Return the model and the text, with room for one token of the text at least."""
    return replace(view.prompt, n_tokens=max(LEAST_TOKENS, len(view.encoding)))


def _maskable(view: View) -> Encoding:
    """Return the text as the model reads it with its own masks."""
    return encode_masks(prompt_of(view))


def _read_places(own: tuple[int, ...], asked: Any) -> list[int] | None:
    """Return the places that the chips hold or a link names, None where those are not the text's own."""
    if isinstance(asked, list):
        return [place for place in asked if place in own]
    if asked == NOTHING:
        return []
    places = sorted(set(map(int, str(asked).split(".")))) if CODE.fullmatch(str(asked)) else []
    return places if places and set(places) <= set(own) else None


@dataclass(frozen=True)
class Chips(Control[tuple[int, ...]]):
    """The tokens of the text as chips; those that are chosen are hidden, by their places.

    At first it is the last word, or none where the text itself has a [MASK].
    """

    def default_of(self, view: Any = None) -> tuple[int, ...]:
        encoding = _maskable(view)
        own = own_places(encoding)
        typed = any(special and end for special, (_, end) in zip(encoding.special, encoding.offsets, strict=True))
        words = [place for place in own if any(map(str.isalnum, encoding.labels[place]))]
        return () if typed or not own else ((words or own)[-1],)

    def link_of(self, value: tuple[int, ...]) -> str:
        return ".".join(map(str, value)) or NOTHING

    def _arguments(self, view: View) -> dict[str, Any]:
        own = own_places(_maskable(view))
        options = f"{own[0]} … {own[-1]}" if own else NOTHING
        return {"default": list(self.default_of(view)), "read": partial(_read_places, own), "options": options}

    def read(self, view: Any = None) -> tuple[int, ...]:
        return tuple(sorted(chosen(self.name, **self._arguments(view))))

    def show(self, view: Any = None) -> tuple[int, ...]:
        encoding = _maskable(view)
        key, places = held(self.name, **self._arguments(view))
        taken = st.pills(
            t("bert.hide"),
            own_places(encoding),
            selection_mode="multi",
            default=places,
            format_func=lambda place: plain(encoding.labels[place]),
            key=key,
            wrap=True,
        )
        taken = tuple(sorted(taken))
        keep(self.name, self.link_of(taken), self.link_of(self.default_of(view)))
        return taken


def hidden_in(view: View, places: tuple[int, ...]) -> Hidden:
    """Return the text with these places hidden, and those where it has a [MASK] itself."""
    return hidden_text(prompt_of(view), places)


def _masks(view: View) -> dict[str, str]:
    read = hidden_in(view, HIDDEN.read(view))
    return {str(place): called(read, place) for place in read.places}


HIDDEN = Chips("bert_hidden")
MASK = Choice("bert_mask", _masks, label="bert.which_mask", kind=int, form="list")


def show_chips(view: View) -> Hidden | None:
    """Show the sentence as chips to click and return what is hidden; None where nothing is."""
    if view.bundle.tokenizer.mask_id is None:
        st.info(t("bert.no_mask_token", name=plain(view.bundle.name)), icon=":material/info:")
        return None
    read = hidden_in(view, HIDDEN.show(view))
    if not read.places:
        st.info(t("bert.hide_one"), icon=":material/visibility_off:")
        return None
    return read


def show_masks(view: View, read: Hidden) -> int:
    """Return the place of the chosen mask; where there are several, show a list of them."""
    return read.places[0] if len(read.places) == 1 else MASK.show(view)


def has_words(read: Hidden) -> bool:
    """Tell whether the text has a token that can be hidden by itself; where not, say so."""
    if own_places(read.original):
        return True
    st.info(t("bert.no_word"), icon=":material/info:")
    return False


def chosen_places(read: Hidden) -> tuple[int, ...]:
    """Return the places that were chosen, without the masks typed in the text."""
    return tuple(place for place, id_ in zip(read.places, read.true_ids, strict=True) if id_ is not None)


def called(read: Hidden, place: int) -> str:
    """Return the name of a mask in a list: its place, and the token that it hides."""
    known = read.true_ids[read.places.index(place)] is not None
    return f"{place} · {read.original.labels[place]}" if known else f"{place} · {t('bert.typed_mask')}"


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
    whole = view.bundle.tokenizer.encode("".join([*parts, text[end:]]), max_len=prompt_of(view).n_tokens)
    return replace(view, encoding=whole if whole.ids == read.masked.ids else read.masked)
