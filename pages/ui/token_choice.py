"""One layer of the model, or one token of the sentence; one that is no longer there falls back to the first."""

import numpy as np

from pages.ui.header import View
from pages.ui.url import choose, choose_from_list


def choose_layer(label: str, view: View) -> int:
    """Show the layers of the model and return the one chosen; it follows from page to page."""
    layers = {str(layer): str(layer) for layer in range(view.bundle.config.n_layers)}
    return int(choose(label, layers, name="layer", default="0"))


def choose_token(label: str, view: View, *, name: str) -> tuple[int, str]:
    """Show the list of tokens and return the position of the one chosen, with what it is called in it.

    Args:
        name: the choice's name in the URL.
    """
    called = [f"{place} · {token}" for place, token in enumerate(view.encoding.labels)]
    chosen = int(choose_from_list(label, {str(place): word for place, word in enumerate(called)}, name=name) or 0)
    return chosen, called[chosen]


def shown_word(label: str) -> str:
    """Return a token's label without the mark of the blank before it."""
    return label.removeprefix("␣") or label


def some_places(change: np.ndarray) -> list[int]:
    """Return up to four places to choose from, in the order of the text; the one that changes most is among them.

    Shapes:
        change: (pos,), not a number where nothing was hidden
    """
    order = [int(place) for place in np.argsort(-np.abs(change), kind="stable") if np.isfinite(change[place])]
    return sorted({order[len(order) * part // 4] for part in range(4)}) if order else []
