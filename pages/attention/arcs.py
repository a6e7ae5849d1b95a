"""The part with arcs over the text: from a chosen token to where it looks, or from who looks at it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.attention.chosen_head import HEAD, LAYER, show_layer_and_head
from pages.attention.figures import ArcsFigure, Direction
from pages.figures.standalone import component_page
from pages.kit.asking import Answer, ask
from pages.kit.component import registered
from pages.kit.controls import Choice, Kept, Values
from pages.kit.exports import Files, caption_of, code_files, offer_files, to_csv, to_npz
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.url import whole_number
from pages.language import language, strings, t
from pages.room import Part
from transformer_core.analysis.attention.heads import layer_looks
from transformer_core.text import Encoding


def _token(view: View, text: str) -> int | None:
    return whole_number(text, len(view.encoding) - 1)


OVER = Choice("attention_over", ("head", "mean", "max"), label="attention.over", words="attention.over_{}")
DIRECTION = Choice[Direction](
    "attention_direction", ("from", "to"), label="attention.direction", words="attention.direction_{}"
)
TOKEN = Kept("attention_token", parse=_token)  # None until one is clicked


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
        "html": lambda: component_page(
            "arcs", figure.to_bytes(caption=caption), title=title, language=chosen, caption=caption
        ),
    }
    offer_files(lambda: files | code_files(answer), key=picture.key, stem=figure.filename, note=t("export.note"))


def glued(encoding: Encoding) -> tuple[bool, ...]:
    """Return for each token whether it follows the one before without a space."""
    ends = (0, *(end for _, end in encoding.offsets))
    return tuple(
        bool(end) and start == before for (start, end), before in zip(encoding.offsets, ends[:-1], strict=True)
    )


def _picture(view: View, values: Values) -> Live:
    """Return the text with its arcs."""
    layer, head, over, direction = values[LAYER], values[HEAD], values[OVER], values[DIRECTION]
    answer = ask(layer_looks, prompt=view.prompt, layer=layer, head=head, over=over)
    token = values[TOKEN]
    figure = ArcsFigure(
        view.encoding.labels,
        glued(view.encoding),
        answer.value.weights,
        answer.value.sharpest[direction == "to"] if token is None else token,
        direction,
        strings("attention_arcs"),
        version=f"{layer}.{head}|{over}|{direction}|{view.encoding.text}",
    )
    return Live((ArcsPicture("arcs", figure, answer),))


def _show(view: View) -> None:
    """Show the controls, the text with its arcs, and what the weights of a row or column sum to."""
    layer, head = show_layer_and_head(view)
    direction_place, over_place = st.columns([1, 2])
    with over_place:
        over = OVER.show()
    with direction_place:
        direction = DIRECTION.show()
    (picture,) = ARCS.live(view).pictures
    assert isinstance(picture, ArcsPicture)
    show_arcs(picture, on_token=lambda token: TOKEN.take(token, view))
    st.caption(t(f"attention.sum_{over}_{direction}"))
    export_arcs(picture, title=t("attention.title_head", layer=layer, head=head))
    ARCS.follow(view)


ARCS = Part("attention", "arcs", _show, _picture, (LAYER, HEAD, OVER, DIRECTION, TOKEN))
