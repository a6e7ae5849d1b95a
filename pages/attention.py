"""Attention: every head of every layer on the typed sentence, one of them large, step by step.

Read next: figures/attention.py.
"""

import streamlit as st

from pages.figures.attention import STEP_NAMES, Words, heads_grid, layer_and_head, one_head
from pages.ui.attention import head_off_experiment, matrix_words, read_heads
from pages.ui.exports import export_head
from pages.ui.glass import under_the_glass
from pages.ui.header import View, header
from pages.ui.language import section, t
from pages.ui.matrix import show_matrix
from pages.ui.url import cell_from_url, choose, remember, set_choice
from pages.ui.verdict import show_verdict


def choose_head(view: View) -> tuple[int, int]:
    """Show the controls of layer and head; a click on the grid sets them as well."""
    layers, heads = st.columns([1, 2])
    with layers:
        layer = choose(
            t("attention.layer"),
            {str(i): str(i) for i in range(view.bundle.config.n_layers)},
            name="layer",
            default="0",
        )
    with heads:
        head = choose(
            t("attention.head"), {str(i): str(i) for i in range(view.bundle.config.n_heads)}, name="head", default="0"
        )
    return int(layer), int(head)


def on_select(panel: str) -> None:
    """Take over a click on the grid."""
    layer, head = layer_and_head(panel)
    set_choice("layer", str(layer))
    set_choice("head", str(head))


def on_cell(cell: tuple[int, int] | None) -> None:
    """Keep the pinned cell in the URL."""
    remember("cell", None if cell is None else f"{cell[0]}.{cell[1]}")


@st.fragment
def explore(view: View, words: Words) -> None:
    """Show the grid, the chosen head and its steps; a click runs nothing else on the page."""
    grid_place, head_place = st.columns(2, gap="large")
    with head_place:
        layer, head = choose_head(view)
        step = choose(
            t("attention.step"), {name: words.steps[name] for name in STEP_NAMES}, name="step", default="weights"
        )
    reading, weights, steps = read_heads(view, layer, head)
    labels, text = view.encoding.labels, view.encoding.text
    with grid_place:
        show_verdict(view.bundle.labels, reading.probabilities)
        same_scale = st.toggle(t("attention.same_scale"), True, key="same_scale", bind="query-params")
        grid = heads_grid(
            weights,
            labels,
            words,
            layer=layer,
            head=head,
            same_scale=same_scale,
            version=f"{layer}.{head}|{text}",
            note=section("attention", "grid"),
        )
        show_matrix(grid, key="heads", on_select=on_select)
        head_off_experiment(view, layer, head, reading)
    with head_place:
        figure = one_head(
            vars(steps),
            steps.divisor,
            labels,
            words,
            step=step,
            version=f"{step}|{layer}.{head}|{text}",
            title=t("attention.title_head", layer=layer, head=head),
            cell=cell_from_url(len(labels)),
            note=section("attention", step),
        )
        show_matrix(figure, key="head_large", on_cell=None if step == "mixture" else on_cell)
        export_head(view, layer, head, steps, step, figure)
    under_the_glass(reading.trace)


view = header()
st.header(t("attention.heading"), anchor=False)
st.markdown(section("attention", "look"))
explore(view, matrix_words())
with st.expander(t("story.why"), icon=":material/school:"):
    st.markdown(section("attention", "why"))
