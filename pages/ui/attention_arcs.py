"""The text with arcs from a chosen token: where it looks, or who looks at it.

Read next: attention_flow.py.
"""

from typing import cast

import streamlit as st

from pages.figures.arcs import ArcsFigure, Direction
from pages.ui.arcs import export_arcs, show_arcs
from pages.ui.asking import ask
from pages.ui.attention import choose_head
from pages.ui.header import View
from pages.ui.language import strings, t
from pages.ui.url import choose, current, keep
from transformer_core.analysis.attention.heads import layer_looks
from transformer_core.text import Encoding

OVERS = ("head", "mean", "max")


def show_arcs_part(view: View) -> None:
    """Show the controls, the text with its arcs, and what to make of them."""
    layer, head = choose_head(view)
    direction_place, over_place = st.columns([1, 2])
    with over_place:
        overs = {name: t(f"attention.over_{name}") for name in OVERS}
        over = choose(t("attention.over"), overs, name="attention_over", default="head")
    with direction_place:
        ways = {name: t(f"attention.direction_{name}") for name in ("from", "to")}
        direction = choose(t("attention.direction"), ways, name="attention_direction", default="from")
    answer = ask(
        layer_looks,
        **view.asked,
        layer=layer,
        head=head,
        over=over,
    )
    figure = ArcsFigure(
        view.encoding.labels,
        glued(view.encoding),
        answer.value.weights,
        chosen_token(len(view.encoding), answer.value.sharpest[direction == "to"]),
        cast(Direction, direction),
        strings("attention_arcs"),
        version=f"{layer}.{head}|{over}|{direction}|{view.encoding.text}",
    )
    show_arcs(figure, answer, key="arcs", on_token=on_token)
    st.caption(t(f"attention.sum_{over}_{direction}"))
    export_arcs(figure, answer, key="arcs", title=t("attention.title_head", layer=layer, head=head))


def chosen_token(size: int, otherwise: int) -> int:
    """Return the token that the URL names, or the other where it names none of `size`."""
    asked = str(current("attention_token") or "")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 5 and int(asked) < size else otherwise


def on_token(token: int) -> None:
    """Keep the chosen token in the URL."""
    keep("attention_token", str(token), "")


def glued(encoding: Encoding) -> tuple[bool, ...]:
    """Return for each token whether it follows the one before without a blank."""
    ends = (0, *(end for _, end in encoding.offsets))
    return tuple(
        bool(end) and start == before for (start, end), before in zip(encoding.offsets, ends[:-1], strict=True)
    )
