"""What is picked in a figure: a head on a board, and tokens of a text by what changes there."""

import numpy as np

from pages.kit.url import set_choice


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
