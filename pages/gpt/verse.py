"""The page's part on verse: which heads look to the line above and to the rhyme, measured, and on a poem."""

import numpy as np
import streamlit as st

from pages.gpt.draw import choose_seed, next_draw
from pages.gpt.figures import head_boards, poem_grid
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import clickable
from pages.ui.exports import export_matrix
from pages.ui.header import EXAMPLES, View, encoded
from pages.ui.language import plain, strings, t
from pages.ui.last_text import read_and_tell
from pages.ui.matrix import show_matrix
from pages.ui.models import offer_model, open_bundle
from pages.ui.url import choose, choose_from_list, forget, keep, set_choice, slide, text_input
from transformer_core.analysis.gpt.continuation import written_on
from transformer_core.analysis.gpt.verse import LOOKS, PoemHead, VerseLooks, measured_looks, poem_head
from transformer_core.bundle_files import BundleError

POET = "gpt-poem"
HEAD, PLACE = "gpt_verse_head", "gpt_verse_place"
LITTLE = 0.1  # nats


def _named(layer: int, head: int) -> str:
    return f"{layer}.{head}"


def _by_weight(weights: np.ndarray) -> list[tuple[int, int]]:
    """Return layer and number of every head, the one with most weight first."""
    return sorted(np.ndindex(weights.shape), key=lambda place: -weights[place])  # type: ignore[return-value]


def _numbers(found: VerseLooks, look: int, head: tuple[int, int]) -> dict[str, str]:
    """Return a head's name, its weight and what is lost without it."""
    weight, worth = found.weights[look][head], found.worth[look][head]
    return {"head": _named(*head), "weight": f"{weight:.0%}", "worth": f"{worth:+.3f}"}


def _choose_head(weights: np.ndarray) -> tuple[int, int]:
    """Show the list of heads, the one that looks there most first, and return the chosen one's layer and number."""
    names = {_named(*place): f"{_named(*place)} · {weights[place]:.0%}" for place in _by_weight(weights)}
    chosen = choose_from_list(t("gpt.verse_head"), names, name=HEAD) or next(iter(names))
    layer, head = map(int, chosen.split("."))
    return layer, head


def _poem(view: View, seed: int) -> str:
    """Return the text and what the model writes after it, to the end."""
    rules = {"how": "sample", "temperature": 1.0, "top_k": None, "top_p": None, "seed": seed, "choices": ()}
    with st.spinner(t("gpt.writing")):
        found = ask_once(written_on, **view.asked, **rules, steps=view.bundle.config.max_len).value
    return view.encoding.text + found.written


def _choose_place(found: PoemHead, look: int) -> int:
    """Show the slider over the poem's characters, and return the chosen one; at first the last that has a partner."""
    asked = np.flatnonzero(found.looks[look].any(-1))
    last = len(found.characters) - 1
    return int(slide(t("gpt.verse_place"), 1, last, name=PLACE, default=int(asked[-1]) if len(asked) else last))


def _go_to(place: int) -> None:
    forget(PLACE)
    keep(PLACE, str(place), "")


def _boards(answer: Answer[VerseLooks], look: int, chosen: tuple[int, int]) -> None:
    """Show each head's weight, and behind a question what is lost without it; a click chooses a head."""
    found = answer.value
    words = {name: t(f"gpt.verse_{name}") for name in ("weight", "worth")}
    words |= {"layer": t("gpt.verse_layer"), "head": t("gpt.verse_one_head")}
    boards = head_boards(
        found.weights[look], found.worth[look], words, strings("matrix"), chosen=chosen, version=f"{look}.{chosen}"
    )

    def on_cell(cell: tuple[int, int] | None) -> None:
        if cell is not None:
            set_choice(HEAD, _named(*cell))

    show_matrix(boards, answer, key="gpt_verse_boards", on_cell=on_cell)
    export_matrix(boards, answer, key="gpt_verse_boards")
    said = {"uniform": f"{found.uniform[look]:.0%}", "places": f"{found.places[look]:,}"}
    st.markdown(t(f"gpt.verse_measured_{LOOKS[look]}", **said, **_numbers(found, look, chosen)))
    first, second = _by_weight(found.weights[look])[:2]
    pair = {
        f"{name}_{place}": value
        for place, at in (("a", first), ("b", second))
        for name, value in _numbers(found, look, at).items()
    }
    st.caption(t("gpt.verse_compared", **pair))


def verse_part(view: View) -> None:
    """Show the measured heads, and one of them on the poem that the model writes from the typed line."""
    poet = view if view.bundle.measured.verse else _poet(view)
    if poet is not None:
        _show_verse(poet)


def _poet(view: View) -> View | None:
    """Offer the model that writes poems in place of one that does not, and show it with a line of its own meanwhile."""
    offer_place, line_place = st.columns(2, gap="large", vertical_alignment="bottom")
    with offer_place:
        offer_model(t("gpt.verse_needs", name=plain(view.bundle.name)), ("gpt",), name=POET)
    try:
        bundle = open_bundle(POET)
    except BundleError:
        return None
    first = EXAMPLES[POET]
    longest = bundle.config.max_len
    with line_place:
        line = text_input(t("gpt.verse_line"), name="gpt_verse_line", default=first)
        encoding = read_and_tell("gpt_verse_line", line, first, lambda line: encoded(bundle, line, max_len=longest))
    return None if encoding is None else View(bundle, encoding)


def _show_verse(view: View) -> None:
    measured = ask_once(measured_looks, bundle=view.bundle)
    look_place, head_place, seed_place, again_place = st.columns([4, 2, 3, 2], vertical_alignment="bottom")
    with look_place:
        looks = {name: t(f"gpt.verse_look_{name}") for name in LOOKS}
        look = LOOKS.index(choose(t("gpt.verse_look"), looks, name="gpt_verse_look", default="rhyme"))
    with head_place:
        layer, head = _choose_head(measured.value.weights[look])
    with seed_place:
        text = _poem(view, choose_seed())
    again_place.button(t("gpt.other_seed"), icon=":material/casino:", key="gpt_verse_seed", on_click=next_draw)
    asked = {"text": text, "n_tokens": view.bundle.config.max_len, "layer": layer, "head": head}
    answer = ask_once(poem_head, bundle=view.bundle, **asked)
    found = answer.value
    grid_place, boards_place = st.columns([1, 1], gap="large")
    with grid_place:
        if len(found.characters) < 2:
            st.info(t("gpt.verse_short"), icon=":material/info:")
            return
        place = _choose_place(found, look)
        words = {name: t(f"gpt.verse_{name}") for name in ("character", "weight")}
        grid = poem_grid(
            found.characters,
            found.lines,
            found.columns,
            found.weights[place],
            found.looks[look, place],
            words,
            chosen=place,
        )
        label = t("gpt.verse_grid_label")
        clickable(grid, answer, key="gpt_verse_grid", stem="gpt_verse", label=label, on_place=_go_to)
        on_partner = float(found.weights[place][found.looks[look, place]].sum())
        st.caption(t("gpt.verse_here", character=plain(found.characters[place]), weight=f"{on_partner:.0%}"))
    with boards_place:
        _boards(measured, look, (layer, head))
