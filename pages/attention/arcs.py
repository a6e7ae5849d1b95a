"""The part with arcs over the text: from a chosen token to where it looks, or from who looks at it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.attention.chosen_head import choose_layer_and_head
from pages.attention.figures import ArcsFigure, Direction, to_html
from pages.ui.asking import Answer, ask
from pages.ui.component import registered
from pages.ui.exports import Files, caption_of, code_files, offer_files
from pages.ui.header import View
from pages.ui.language import language, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.pickers import chosen_layer_and_head, head_choices
from pages.ui.table_files import to_csv, to_npz
from pages.ui.url import choose, chosen_option, current, keep, whole_number
from transformer_core.analysis.attention.heads import layer_looks
from transformer_core.text import Encoding

OVERS, WAYS = ("head", "mean", "max"), ("from", "to")


@dataclass(frozen=True, eq=False)
class ArcsPicture:
    """A text with arcs as a page mounts it.

    Args:
        key: unique on the page.
        figure: what is shown.
        answer: what it was drawn from, for the caption of its files.
    """

    key: str
    figure: ArcsFigure
    answer: Answer[Any]

    def to_bytes(self, *, stamp: int = 0) -> bytes:
        """Return what the component takes; nothing is painted on it, so it has no stamp."""
        return self.figure.to_bytes(caption=caption_of(self.answer.arguments), key=self.key)


def show_arcs(picture: ArcsPicture, *, on_token: Callable[[int], None]) -> None:
    """Show the figure; the browser draws the arcs of a clicked token at once, without waiting for the server.

    Args:
        picture: what to show.
        on_token: called with the newly chosen token, before the page runs.
    """

    def on_token_change() -> None:
        token = (st.session_state.get(picture.key) or {}).get("token")
        if isinstance(token, int) and 0 <= token < len(picture.figure.labels):
            on_token(token)

    registered("arcs")(key=picture.key, data=picture.to_bytes(), on_token_change=on_token_change)


def export_arcs(picture: ArcsPicture, *, title: str) -> None:
    """Offer the weights as CSV and .npz, the figure as a page of its own, and the script.

    PNG and SVG are made by the figure itself, in the browser.
    """
    figure, answer = picture.figure, picture.answer
    caption, chosen = caption_of(answer.arguments), language()  # read here: the files are made outside a page run
    files: Files = {
        "csv": lambda: to_csv(figure.weights, figure.labels, figure.labels).encode("utf-8-sig"),
        "npz": lambda: to_npz(answer.arrays),
        "html": lambda: to_html(figure, title=title, language=chosen, caption=caption),
    }
    offer_files(lambda: files | code_files(answer), key=picture.key, stem=figure.filename, note=t("export.note"))


def chosen_token(size: int, otherwise: int) -> int:
    """Return the token that the URL names, or `otherwise` if it names none from 0 to `size` - 1."""
    token = whole_number(current("attention_token"), size - 1)
    return otherwise if token is None else token


def on_token(token: int) -> None:
    """Keep the chosen token in the URL."""
    keep("attention_token", str(token), "")


def glued(encoding: Encoding) -> tuple[bool, ...]:
    """Return for each token whether it follows the one before without a space."""
    ends = (0, *(end for _, end in encoding.offsets))
    return tuple(
        bool(end) and start == before for (start, end), before in zip(encoding.offsets, ends[:-1], strict=True)
    )


def live_arcs(view: View) -> Live:
    """Return the text with its arcs, by what is chosen."""
    layer, head = chosen_layer_and_head(view)
    over = chosen_option("attention_over", OVERS, default="head")
    direction: Direction = "to" if chosen_option("attention_direction", WAYS, default="from") == "to" else "from"
    answer = ask(layer_looks, **view.asked, layer=layer, head=head, over=over)
    figure = ArcsFigure(
        view.encoding.labels,
        glued(view.encoding),
        answer.value.weights,
        chosen_token(len(view.encoding), answer.value.sharpest[direction == "to"]),
        direction,
        strings("attention_arcs"),
        version=f"{layer}.{head}|{over}|{direction}|{view.encoding.text}",
    )
    return Live((ArcsPicture("arcs", figure, answer),))


def show_arcs_part(view: View) -> None:
    """Show the controls, the text with its arcs, and what the weights of a row or column sum to."""
    layer, head = choose_layer_and_head(view)
    direction_place, over_place = st.columns([1, 2])
    with over_place:
        overs = {name: t(f"attention.over_{name}") for name in OVERS}
        over = choose(t("attention.over"), overs, name="attention_over", default="head")
    with direction_place:
        ways = {name: t(f"attention.direction_{name}") for name in WAYS}
        direction = choose(t("attention.direction"), ways, name="attention_direction", default="from")
    (picture,) = live_arcs(view).pictures
    assert isinstance(picture, ArcsPicture)
    show_arcs(picture, on_token=on_token)
    st.caption(t(f"attention.sum_{over}_{direction}"))
    export_arcs(picture, title=t("attention.title_head", layer=layer, head=head))
    choices = head_choices(view) | {"attention_over": (OVERS, over), "attention_direction": (WAYS, direction)}
    follow_finger("attention", "arcs", view, choices=choices)
