"""Masks: paint who may attend to whom, see a batch's masks, and catch a model that learns without one."""

import streamlit as st

from pages.glass.box import under_the_glass
from pages.masks.batch import show_batch
from pages.masks.cheat import show_cheating
from pages.masks.figures import painter
from pages.masks.painter import controls, explains, figure_words, invert_and_reset, mask_edits, on_paint
from pages.masks.verdict import compare_layers, show_change, show_wholly_masked, tell_deaf
from pages.ui.asking import ask
from pages.ui.exports import export_matrix
from pages.ui.header import View, header
from pages.ui.language import section, strings
from pages.ui.matrix import show_matrix
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page
from transformer_core.analysis.masks.masked_head import masked_head


@st.fragment
def paint(view: View) -> None:
    """Show the painter; a stroke runs nothing else on the page."""
    choices = controls(view)
    answer = ask(masked_head, **choices.arguments)
    found = answer.value
    show_change(choices, found)
    figure = painter(
        found.mask,
        vars(found.steps),
        found.steps.divisor if explains(view.bundle.config) else None,
        found.labels,
        figure_words(),
        strings("matrix"),
        version=choices.version,
        note=section("masks", "paint_note"),
    )
    show_matrix(figure, answer, key="masks_painter", on_paint=on_paint)
    with st.container(horizontal=True, gap="small"):
        invert_and_reset(found.mask)
        export_matrix(figure, answer, key="masks_paint")
    tell_deaf(choices, found)
    show_wholly_masked(choices, found)
    compare_layers(choices)
    sites = (f"*.layer{choices.layer}.self_attention.masked_scores",)
    under_the_glass(choices.view, sites=sites, edits=mask_edits(choices))


PARTS = {"paint": paint, "batch": show_batch, "cheat": lambda _: show_cheating()}

# The painter's glass lies beside it, for it must know what is painted.
parts_page("masks", lambda: header(kinds=READERS), PARTS, sites=dict.fromkeys(PARTS))
