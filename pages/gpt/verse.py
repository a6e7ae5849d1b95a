"""The page's part on verse: which heads look to the line above and to the rhyme, measured, and on a poem."""

from typing import Any

import numpy as np
import streamlit as st

from pages.gpt.draw import SEED, choose_seed, chosen_seed_of_draws, next_draw
from pages.gpt.figures import head_boards, poem_grid
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import Drawing, show_drawing
from pages.ui.header import EXAMPLES, View, encoded, pause_of
from pages.ui.language import plain, strings, t
from pages.ui.last_text import read_and_tell
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.models import offer_model, open_bundle
from pages.ui.url import (
    choose,
    choose_from_list,
    chosen_option,
    current,
    forget,
    keep,
    set_choice,
    slid,
    slide,
    text_input,
)
from transformer_core.analysis.gpt.continuation import written_on
from transformer_core.analysis.gpt.verse import LOOKS, PoemHead, VerseLooks, measured_looks, poem_head
from transformer_core.bundle_files import BundleError

POET = "gpt-poem"
HEAD, PLACE, LINE, LOOK = "gpt_verse_head", "gpt_verse_place", "gpt_verse_line", "gpt_verse_look"
USUAL_LOOK = "rhyme"
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


def _choose_head(weights: np.ndarray) -> None:
    """Show the list of heads, the one that looks there most first."""
    names = {_named(*place): f"{_named(*place)} · {weights[place]:.0%}" for place in _by_weight(weights)}
    choose_from_list(t("gpt.verse_head"), names, name=HEAD)


def _chosen_head(weights: np.ndarray) -> tuple[int, int]:
    """Return the chosen head's layer and number."""
    names = [_named(*place) for place in _by_weight(weights)]
    layer, head = map(int, chosen_option(HEAD, names, default=names[0]).split("."))
    return layer, head


def _chosen_look() -> int:
    """Return the number of the chosen look."""
    return LOOKS.index(chosen_option(LOOK, LOOKS, default=USUAL_LOOK))


def _on_poem(view: View, head: tuple[int, int]) -> Answer[PoemHead]:
    """Return one head on the text and what the model writes after it, to the end."""
    seed, longest = chosen_seed_of_draws(), view.bundle.config.max_len
    rules = {"how": "sample", "temperature": 1.0, "top_k": None, "top_p": None, "seed": seed, "choices": ()}
    poem = view.encoding.text + ask_once(written_on, **view.asked, **rules, steps=longest).value.written
    return ask_once(poem_head, bundle=view.bundle, text=poem, n_tokens=longest, layer=head[0], head=head[1])


def _places(found: PoemHead, look: int) -> dict[str, Any]:
    """Return the slider over the poem's characters; at first it is at the last that has a partner."""
    asked, last = np.flatnonzero(found.looks[look].any(-1)), len(found.characters) - 1
    return {"low": 1, "high": last, "name": PLACE, "default": int(asked[-1]) if len(asked) else last}


def _go_to(place: int) -> None:
    forget(PLACE)
    keep(PLACE, str(place), "")


def live_verse(view: View) -> Live:
    """Return one head on the poem, and each head's weight.

    Raises:
        ValueError: the line cannot be read, or the poem has one character.
        BundleError: the model that writes poems cannot be opened.
    """
    if not view.bundle.measured.verse:
        bundle = open_bundle(POET)
        line = str(current(LINE) or EXAMPLES[POET])
        view = View(bundle, encoded(bundle, line, max_len=bundle.config.max_len))
    measured, look = ask_once(measured_looks, bundle=view.bundle), _chosen_look()
    head = _chosen_head(measured.value.weights[look])
    answer = _on_poem(view, head)
    if len(answer.value.characters) < 2:
        raise ValueError(t("gpt.verse_short"))
    place = int(slid(**_places(answer.value, look)))
    return Live((_boards(measured, look, head),), drawings=(_grid(answer, look, place),))


def _grid(answer: Answer[PoemHead], look: int, place: int) -> Drawing:
    """Return the poem with the weight of the head on each character before the chosen one."""
    found = answer.value
    words = {name: t(f"gpt.verse_{name}") for name in ("character", "weight")}
    poem = found.characters, found.lines, found.columns
    grid = poem_grid(*poem, found.weights[place], found.looks[look, place], words, chosen=place)
    return Drawing("gpt_verse_grid", grid, answer, "gpt_verse", t("gpt.verse_grid_label"))


def _boards(answer: Answer[VerseLooks], look: int, chosen: tuple[int, int]) -> Picture:
    """Return each head's weight, and what is lost without it."""
    found = answer.value
    words = {name: t(f"gpt.verse_{name}") for name in ("weight", "worth")}
    words |= {"layer": t("gpt.verse_layer"), "head": t("gpt.verse_one_head")}
    boards = head_boards(
        found.weights[look], found.worth[look], words, strings("matrix"), chosen=chosen, version=f"{look}.{chosen}"
    )
    return Picture("gpt_verse_boards", boards, answer, pins=False)


def _show_boards(boards: Picture, look: int, chosen: tuple[int, int]) -> None:
    """Show them with what was measured; a click chooses a head."""
    found: VerseLooks = boards.answer.value

    def on_cell(cell: tuple[int, int] | None) -> None:
        if cell is not None:
            set_choice(HEAD, _named(*cell))

    show_picture(boards, on_cell=on_cell)
    export_picture(boards)
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
        _show_verse(poet, view)


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
        line = text_input(t("gpt.verse_line"), name=LINE, default=first, pause=pause_of("gpt", "verse"))
        encoding = read_and_tell(LINE, line, first, lambda line: encoded(bundle, line, max_len=longest))
    return None if encoding is None else View(bundle, encoding)


def _show_verse(view: View, page_view: View) -> None:
    """Show the heads of a model that writes poems.

    Args:
        view: of that model.
        page_view: what the header chose.
    """
    measured = ask_once(measured_looks, bundle=view.bundle)
    look_place, head_place, seed_place, again_place = st.columns([4, 2, 3, 2], vertical_alignment="bottom")
    with look_place:
        looks = {name: t(f"gpt.verse_look_{name}") for name in LOOKS}
        choose(t("gpt.verse_look"), looks, name=LOOK, default=USUAL_LOOK)
        look = _chosen_look()
    with head_place:
        _choose_head(measured.value.weights[look])
        head = _chosen_head(measured.value.weights[look])
    with seed_place:
        seed = choose_seed()
        with st.spinner(t("gpt.writing")):
            answer = _on_poem(view, head)
    again_place.button(t("gpt.other_seed"), icon=":material/casino:", key="gpt_verse_seed", on_click=next_draw)
    found = answer.value
    grid_place, boards_place = st.columns([1, 1], gap="large")
    with grid_place:
        if len(found.characters) < 2:
            st.info(t("gpt.verse_short"), icon=":material/info:")
            return
        places = _places(found, look)
        place = int(slide(t("gpt.verse_place"), **places))
        show_drawing(_grid(answer, look, place), on_place=_go_to)
        sliders = {PLACE: place if place != places["default"] else "", SEED: seed}
        follow_finger("gpt", "verse", page_view, choices={LOOK: (LOOKS, LOOKS[look])}, boxes=(LINE,), sliders=sliders)
        on_partner = float(found.weights[place][found.looks[look, place]].sum())
        st.caption(t("gpt.verse_here", character=plain(found.characters[place]), weight=f"{on_partner:.0%}"))
    with boards_place:
        _show_boards(_boards(measured, look, head), look, head)
