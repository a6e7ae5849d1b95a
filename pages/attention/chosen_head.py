"""The chosen head: its controls, the clicks that choose it, its weights, and its steps as a large matrix."""

import re

from pages.figures.heads import STEP_NAMES, layer_and_head, one_head
from pages.kit.asking import ask
from pages.kit.controls import Choice, Values, head_control, layer_control, show_in_columns
from pages.kit.header import View
from pages.kit.matrix import Picture, show_picture, window_note
from pages.kit.url import in_url, remember, set_choice
from pages.language import joined, section, strings, t
from transformer_core.analysis.attention.heads import heads_of_text

LAYER, HEAD = layer_control("attention.layer"), head_control("attention.head")
STEP = Choice("step", STEP_NAMES, label="attention.step", words="step.{}", default="weights")


def show_layer_and_head(view: View) -> tuple[int, int]:
    """Show the controls of layer and head and return both; a click on a figure sets them too."""
    layer, head = show_in_columns(view, LAYER, HEAD, widths=[1, 2])
    return layer, head


def on_head(layer: int, head: int) -> None:
    """Take over a head that was clicked; only in a callback."""
    set_choice("layer", str(layer))
    set_choice("head", str(head))


def on_board(cell: tuple[int, int] | None) -> None:
    """Take over a click on a board of layers and heads."""
    if cell is not None:
        on_head(*cell)


def on_panel(panel: str) -> None:
    """Choose the head whose panel was clicked in the grid of heads."""
    on_head(*layer_and_head(panel))


def _on_cell(cell: tuple[int, int] | None) -> None:
    """Keep the pinned cell of the large matrix in the URL, or none."""
    remember("cell", None if cell is None else f"{cell[0]}.{cell[1]}")


def board_words() -> dict[str, str]:
    """Return the words of a matrix whose axes are layers and heads, in the chosen language."""
    return strings("attention_board")


def step_words(step: str) -> dict[str, str]:
    """Return the words of one head's figure, as one_head takes them, in the chosen language."""
    return strings("axis") | {"step": t(f"step.{step}"), "quantity": t(f"quantity.{step}")}


def _cell_from_url(size: int) -> tuple[int, int] | None:
    """Return the pinned cell (row, col) that the URL names, where both lie within `size`."""
    found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", in_url("cell"))
    if found is None:
        return None
    row, col = map(int, found.groups())
    return (row, col) if row < size and col < size else None


def _about_head(view: View, layer: int, head: int) -> str:
    """Return what is to be said of a head whose keys and values are others' too, or whose layer has a window."""
    config, said = view.bundle.config, []
    if config.kv_heads < config.n_heads:
        shared = config.kv_head(head)
        said.append(t("attention.shares", shared=shared, readers=", ".join(map(str, config.readers(shared)))))
    return joined(*said, window_note(view, layer))


def large_head(key: str, view: View, values: Values, step: str = "weights", *, pins: bool = False) -> Picture:
    """Draw one step of the chosen head as a large matrix; its answer has the weights of all heads, too.

    Args:
        key, pins: as of Picture.
    """
    labels, text, layer, head = view.encoding.labels, view.encoding.text, values[LAYER], values[HEAD]
    answer = ask(heads_of_text, prompt=view.prompt, layer=layer, head=head)
    steps = answer.value.steps
    figure = one_head(
        vars(steps),
        labels,
        step_words(step),
        step=step,
        title=t("attention.title_head", layer=layer, head=head),
        cell=_cell_from_url(len(labels)),
        note=joined(section("attention", step), _about_head(view, layer, head)).strip(),
        window=None if step == "mixture" else view.bundle.reader.sees(layer),
    )
    return Picture(key, figure, answer, pins=pins, version=f"{step}|{layer}.{head}|{text}")


def show_large(large: Picture) -> None:
    """Show the large matrix with its files; where its key keeps no pinned cell, all of them share one in the link."""
    show_picture(large, on_cell=None if large.pins else _on_cell, files=True)
