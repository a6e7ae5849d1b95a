"""The chosen head: its controls, the clicks that choose it, its weights, and its steps as a large matrix."""

import re

import streamlit as st

from pages.figures.heads import layer_and_head, one_head
from pages.figures.matrix import MatrixFigure
from pages.ui.asking import Answer, ask
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.pickers import choose_head, choose_layer, on_head
from pages.ui.url import in_url, remember
from transformer_core.analysis.attention.heads import Heads, heads_of_text


def choose_layer_and_head(view: View) -> tuple[int, int]:
    """Show the controls of layer and head and return both; a click on a figure sets them too."""
    layers, heads = st.columns([1, 2])
    with layers:
        layer = choose_layer(t("attention.layer"), view)
    with heads:
        head = choose_head(t("attention.head"), view.bundle.config.n_heads)
    return layer, head


def on_panel(panel: str) -> None:
    """Choose the head whose panel was clicked in the grid of heads."""
    on_head(*layer_and_head(panel))


def on_cell(cell: tuple[int, int] | None) -> None:
    """Keep the pinned cell of the large matrix in the URL, or none."""
    remember("cell", None if cell is None else f"{cell[0]}.{cell[1]}")


def read_heads(view: View, layer: int, head: int) -> Answer[Heads]:
    """Return the weights of every head, and every step of the chosen one, from one forward pass."""
    return ask(heads_of_text, **view.asked, layer=layer, head=head)


def board_words() -> dict[str, str]:
    """Return the words of a matrix whose axes are layers and heads, in the chosen language."""
    return strings("matrix") | strings("attention_board")


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


def large_head(view: View, heads: Heads, layer: int, head: int, step: str) -> MatrixFigure:
    """Draw one step of the chosen head as a large matrix, with the arithmetic of every cell."""
    labels, text = view.encoding.labels, view.encoding.text
    return one_head(
        vars(heads.steps),
        heads.steps.divisor,
        labels,
        step_words(step),
        strings("matrix"),
        step=step,
        version=f"{step}|{layer}.{head}|{text}",
        title=t("attention.title_head", layer=layer, head=head),
        cell=_cell_from_url(len(labels)),
        note=section("attention", step),
    )
