"""The page's part on why this word: the score of the likeliest word behind a mask, taken apart."""

import streamlit as st

from pages.bert.hidden_words import (
    HIDDEN,
    MASK,
    chosen_places,
    hidden_in,
    prompt_of,
    sentence_of,
    show_chips,
    show_masks,
)
from pages.kit.header import View
from pages.score.part import Asked, Score


def _asked(view: View) -> Asked | None:
    if view.bundle.tokenizer.mask_id is None:
        return None
    read = hidden_in(view, HIDDEN.read(view))
    if not read.places:
        return None
    place = read.places[0] if len(read.places) == 1 else MASK.read(view)
    return {"prompt": prompt_of(view), "hidden": chosen_places(read), "place": place}


def _above(view: View) -> None:
    read = show_chips(view)
    if read is not None:
        show_masks(view, read)
        st.html(sentence_of(read))


WHY = Score("bert", "why", asked=_asked, above=_above, controls=(HIDDEN, MASK), group="gap").part
