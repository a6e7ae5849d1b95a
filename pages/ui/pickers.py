"""Controls that choose a layer, a head or a token; one that is no longer there falls back to the first."""

import numpy as np

from pages.ui.header import View
from pages.ui.live import Choices
from pages.ui.url import choose, choose_from_list, chosen, chosen_option, forget, keep, set_choice, whole_number

MOST_BUTTONS = 16
MOST_SEED = 9_999


def choose_layer(label: str, view: View, *, in_list: bool = False) -> int:
    """Show the layers of the model and return the one chosen; it follows from page to page.

    Args:
        in_list: show a list, which takes less room than buttons.
    """
    return _choose_number(label, view.bundle.config.n_layers, name="layer", in_list=in_list)


def choose_head(label: str, n_heads: int, *, name: str = "head", in_list: bool = False) -> int:
    """Show the heads of a layer and return the one chosen; it follows from page to page.

    Args:
        name: the choice's name in the URL.
        in_list: show a list, which takes less room than buttons; many heads always are one.
    """
    return _choose_number(label, n_heads, name=name, in_list=in_list or n_heads > MOST_BUTTONS)


def chosen_number(name: str, count: int) -> int:
    """Return the number of a layer or a head that is chosen, without a control."""
    return int(chosen_option(name, numbers(count), default="0"))


def numbers(count: int) -> list[str]:
    """Return the options of a layer or a head, as the URL has them."""
    return [str(number) for number in range(count)]


def chosen_layer_and_head(view: View) -> tuple[int, int]:
    """Return the layer and the head that are chosen, without their controls."""
    config = view.bundle.config
    return chosen_number("layer", config.n_layers), chosen_number("head", config.n_heads)


def layer_choices(view: View) -> Choices:
    """Return the control of the layer as a live figure follows it."""
    count = view.bundle.config.n_layers
    return {"layer": (numbers(count), str(chosen_number("layer", count)))}


def head_choices(view: View) -> Choices:
    """Return both controls as a live figure follows them."""
    _, head = chosen_layer_and_head(view)
    return layer_choices(view) | {"head": (numbers(view.bundle.config.n_heads), str(head))}


def _choose_number(label: str, count: int, *, name: str, in_list: bool) -> int:
    options = {number: number for number in numbers(count)}
    if in_list:
        return int(choose_from_list(label, options, name=name) or 0)
    return int(choose(label, options, name=name, default="0"))


def choose_token(label: str, view: View, *, name: str) -> tuple[int, str]:
    """Show the list of tokens and return the position of the one chosen, with what it is called in it.

    Args:
        name: the choice's name in the URL.
    """
    called = _called(view)
    chosen = int(choose_from_list(label, {str(place): word for place, word in enumerate(called)}, name=name) or 0)
    return chosen, called[chosen]


def chosen_token(view: View, *, name: str) -> tuple[int, str]:
    """Return what choose_token does, without its list."""
    called = _called(view)
    chosen = int(chosen_option(name, numbers(len(called)), default="0"))
    return chosen, called[chosen]


def _called(view: View) -> list[str]:
    return [f"{place} · {token}" for place, token in enumerate(view.encoding.labels)]


def some_places(change: np.ndarray) -> list[int]:
    """Return up to four places to choose from, in the order of the text; the one that changes most is among them.

    Shapes:
        change: (pos,), not a number where nothing was hidden
    """
    order = [int(place) for place in np.argsort(-np.abs(change), kind="stable") if np.isfinite(change[place])]
    return sorted({order[len(order) * part // 4] for part in range(4)}) if order else []


def shown_word(label: str) -> str:
    """Return a label without the mark of the blank before it."""
    return label.removeprefix("␣") or label


def on_head(layer: int, head: int) -> None:
    """Take over a head that was clicked; only in a callback."""
    set_choice("layer", str(layer))
    set_choice("head", str(head))


def on_board(cell: tuple[int, int] | None) -> None:
    """Take over a click on a board of layers and heads."""
    if cell is not None:
        on_head(*cell)


def chosen_seed(name: str, *, usual: int = 0, most: int = MOST_SEED) -> int:
    """Return the seed that a page draws with, without a widget."""
    return chosen(name, usual, lambda asked: whole_number(asked, most), f"0 … {most}")


def next_seed(name: str, *, usual: int = 0, most: int = MOST_SEED) -> None:
    """Take the seed after the chosen one; only in a callback."""
    following = (chosen_seed(name, usual=usual, most=most) + 1) % (most + 1)
    forget(name)
    keep(name, str(following), str(usual))
