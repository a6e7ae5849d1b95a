"""The page's part on verse: which heads look to the line above and to the rhyme, measured, and on a poem."""

import numpy as np
import streamlit as st

from pages.gpt.draw import SEED, next_draw
from pages.gpt.figures import head_boards, poem_grid
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Slider, Text, Values
from pages.kit.header import EXAMPLES, View, encoded, pause_of
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.models import offer_model, open_bundle
from pages.language import plain, t
from pages.room import Part, values_of
from transformer_core.analysis.gpt.continuation import written_on
from transformer_core.analysis.gpt.verse import LOOKS, PoemHead, VerseLooks, measured_looks, poem_head
from transformer_core.prompt import Prompt
from transformer_core.untrusted.bundle_files import BundleError

POET = "gpt-poem"
LOOK = Choice("gpt_verse_look", LOOKS, label="gpt.verse_look", words="gpt.verse_look_{}", default="rhyme")


def _poet(view: View, line: str) -> View:
    """Return the model that writes poems and its first line: the page's own where it does.

    Raises:
        ValueError: the line cannot be read.
        BundleError: that model cannot be opened.
    """
    if view.bundle.measured.verse:
        return view
    bundle = open_bundle(POET)
    return View(bundle, encoded(bundle, line, max_len=bundle.config.max_len))


LINE = Text(
    "gpt_verse_line",
    EXAMPLES[POET],
    label="gpt.verse_line",
    parse=_poet,
    pause=lambda _: pause_of("gpt", "verse"),
)


def _named(layer: int, head: int) -> str:
    return f"{layer}.{head}"


def _place_of(name: str) -> tuple[int, int]:
    layer, head = map(int, name.split("."))
    return layer, head


def _by_weight(weights: np.ndarray) -> list[tuple[int, int]]:
    """Return layer and number of every head, the one with most weight first."""
    return sorted(np.ndindex(weights.shape), key=lambda place: -weights[place])  # type: ignore[return-value]


def _numbers(found: VerseLooks, look: int, head: tuple[int, int]) -> dict[str, str]:
    """Return a head's name, its weight and what is lost without it."""
    weight, worth = found.weights[look][head], found.worth[look][head]
    return {"head": _named(*head), "weight": f"{weight:.0%}", "worth": f"{worth:+.3f}"}


def _measured(poet: View) -> Answer[VerseLooks]:
    return ask_once(measured_looks, bundle=poet.bundle)


def _heads(view: View) -> dict[str, str]:
    """Return the heads with their labels, the one that looks there most first."""
    weights = _measured(LINE.read(view)).value.weights[LOOKS.index(LOOK.read())]
    return {_named(*place): f"{_named(*place)} · {weights[place]:.0%}" for place in _by_weight(weights)}


HEAD = Choice("gpt_verse_head", _heads, label="gpt.verse_head", form="list")
LOOKING = (LINE, LOOK, HEAD, SEED)


def _on_poem(values: Values) -> Answer[PoemHead]:
    """Return the chosen head on the first line and what the model writes after it, to the end."""
    poet, (layer, head) = values[LINE], _place_of(values[HEAD])
    longest = poet.bundle.config.max_len
    rules = {"how": "sample", "temperature": 1.0, "top_k": None, "top_p": None, "seed": values[SEED], "choices": ()}
    poem = poet.encoding.text + ask_once(written_on, prompt=poet.prompt, **rules, steps=longest).value.written
    return ask_once(poem_head, prompt=Prompt(poet.bundle, poem, longest), layer=layer, head=head)


def _last(view: View) -> int:
    return len(_on_poem(values_of(LOOKING, view)).value.characters) - 1


def _last_with_partner(view: View) -> int:
    """Return the last character that looks at another one."""
    values = values_of(LOOKING, view)
    asked = np.flatnonzero(_on_poem(values).value.looks[LOOKS.index(values[LOOK])].any(-1))
    return int(asked[-1]) if len(asked) else _last(view)


PLACE = Slider("gpt_verse_place", 1, _last, _last_with_partner, label="gpt.verse_place")


def _picture(view: View, values: Values) -> Live:
    """Return one head on the poem, and each head's weight.

    Raises:
        ValueError: the poem has one character.
    """
    measured, look = _measured(values[LINE]), LOOKS.index(values[LOOK])
    answer = _on_poem(values)
    if len(answer.value.characters) < 2:
        raise ValueError(t("gpt.verse_short"))
    boards = _boards(measured, look, _place_of(values[HEAD]))
    return Live((boards,), drawings=(_grid(answer, look, values[PLACE]),))


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
    boards = head_boards(found.weights[look], found.worth[look], words, chosen=chosen)
    return Picture("gpt_verse_boards", boards, answer, pins=False, version=f"{look}.{chosen}")


def _show_boards(view: View, boards: Picture) -> None:
    """Show them with what was measured; a click chooses a head."""
    found: VerseLooks = boards.answer.value
    look, chosen = LOOKS.index(LOOK.read()), _place_of(HEAD.read(view))

    def on_cell(cell: tuple[int, int] | None) -> None:
        if cell is not None:
            HEAD.take(_named(*cell), view)

    show_picture(boards, on_cell=on_cell, files=True)
    said = {"uniform": f"{found.uniform[look]:.0%}", "places": f"{found.places[look]:,}"}
    st.markdown(t(f"gpt.verse_measured_{LOOKS[look]}", **said, **_numbers(found, look, chosen)))
    first, second = _by_weight(found.weights[look])[:2]
    pair = {
        f"{name}_{place}": value
        for place, at in (("a", first), ("b", second))
        for name, value in _numbers(found, look, at).items()
    }
    st.caption(t("gpt.verse_compared", **pair))


def _offer_poet(view: View) -> bool:
    """Offer the model that writes poems in place of one that does not, with a line of its own meanwhile.

    Returns:
        Whether that model can write on.
    """
    offer_place, line_place = st.columns(2, gap="large", vertical_alignment="bottom")
    with offer_place:
        offer_model(t("gpt.needs_verse", name=plain(view.bundle.name)), ("gpt",), name=POET)
    try:
        open_bundle(POET)
    except BundleError:
        return False
    with line_place:
        return LINE.show(view) is not None


def _show(view: View) -> None:
    """Show the measured heads, and one of them on the poem that the model writes from the typed line."""
    if not view.bundle.measured.verse and not _offer_poet(view):
        return
    look_place, head_place, seed_place, again_place = st.columns([4, 2, 3, 2], vertical_alignment="bottom")
    with look_place:
        LOOK.show()
    with head_place:
        HEAD.show(view)
    with seed_place:
        SEED.show()
        with st.spinner(t("gpt.writing")):
            found = _on_poem(values_of(LOOKING, view)).value
    again_place.button(t("gpt.other_seed"), icon=":material/casino:", key="gpt_verse_seed", on_click=next_draw)
    grid_place, boards_place = st.columns([1, 1], gap="large")
    with grid_place:
        if len(found.characters) < 2:
            st.info(t("gpt.verse_short"), icon=":material/info:")
            return
        place = PLACE.show(view)
        live = VERSE.live(view)
        show_drawing(*live.drawings, on_place=lambda where: PLACE.take(where, view))
        VERSE.follow(view)
        on_partner = float(found.weights[place][found.looks[LOOKS.index(LOOK.read()), place]].sum())
        st.caption(t("gpt.verse_here", character=plain(found.characters[place]), weight=f"{on_partner:.0%}"))
    with boards_place:
        (boards,) = live.matrices
        _show_boards(view, boards)


VERSE = Part("gpt", "verse", _show, _picture, (*LOOKING, PLACE))
