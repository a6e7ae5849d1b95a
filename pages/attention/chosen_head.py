"""The chosen head: its controls, the clicks that choose it, its weights, and its steps as a large matrix."""

import streamlit as st

from pages.figures.heads import STEP_NAMES, Words, layer_and_head, one_head
from pages.figures.matrix import MatrixFigure
from pages.ui.asking import Answer, ask
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.token_choice import choose_layer
from pages.ui.url import cell_from_url, choose, remember, set_choice
from transformer_core.analysis.attention.heads import Heads, heads_of_text


def choose_head(view: View) -> tuple[int, int]:
    """Show the controls of layer and head and return both; a click on a figure sets them too."""
    layers, heads = st.columns([1, 2])
    with layers:
        layer = choose_layer(t("attention.layer"), view)
    with heads:
        names = {str(i): str(i) for i in range(view.bundle.config.n_heads)}
        head = choose(t("attention.head"), names, name="head", default="0")
    return layer, int(head)


def on_head(layer: int, head: int) -> None:
    """Choose the head that was clicked; call it in a callback only."""
    set_choice("layer", str(layer))
    set_choice("head", str(head))


def on_panel(panel: str) -> None:
    """Choose the head whose panel was clicked in the grid of heads."""
    on_head(*layer_and_head(panel))


def on_board(cell: tuple[int, int] | None) -> None:
    """Choose the head whose cell was clicked on a board of layers and heads."""
    if cell is not None:
        on_head(*cell)


def on_cell(cell: tuple[int, int] | None) -> None:
    """Keep the pinned cell of the large matrix in the URL, or none."""
    remember("cell", None if cell is None else f"{cell[0]}.{cell[1]}")


def read_heads(view: View, layer: int, head: int) -> Answer[Heads]:
    """Return the weights of every head, and every step of the chosen one, from one forward pass."""
    return ask(heads_of_text, **view.asked, layer=layer, head=head)


def board_words() -> dict[str, str]:
    """Return the words of a matrix whose axes are layers and heads, in the chosen language."""
    return strings("matrix") | strings("attention_board")


def matrix_words() -> Words:
    """Return the words of the attention figures in the chosen language."""
    return Words(
        ui=strings("matrix"),
        query=t("axis.query"),
        key=t("axis.key"),
        dimension=t("axis.dimension"),
        layer=t("axis.layer"),
        head=t("axis.head"),
        steps={name: t(f"step.{name}") for name in STEP_NAMES},
        quantities={name: t(f"quantity.{name}") for name in STEP_NAMES},
    )


def large_head(view: View, heads: Heads, layer: int, head: int, step: str) -> MatrixFigure:
    """Draw one step of the chosen head as a large matrix, with the arithmetic of every cell."""
    labels, text = view.encoding.labels, view.encoding.text
    return one_head(
        vars(heads.steps),
        heads.steps.divisor,
        labels,
        matrix_words(),
        step=step,
        version=f"{step}|{layer}.{head}|{text}",
        title=t("attention.title_head", layer=layer, head=head),
        cell=cell_from_url(len(labels)),
        note=section("attention", step),
    )
