"""Mount the text with arcs, hear which word was chosen, and offer its files.

Read next: ../figures/arcs.py.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.figures.arcs import ArcsFigure, component_assets, to_html
from pages.figures.exports import to_csv, to_npz
from pages.ui.asking import Answer
from pages.ui.caption import caption_of
from pages.ui.component import registered
from pages.ui.exports import Files, code_files, offer_files
from pages.ui.language import language, t

_ASSETS = component_assets()


def show_arcs(figure: ArcsFigure, answer: Answer[Any], *, key: str, on_token: Callable[[int], None]) -> None:
    """Show the figure; a chosen word's arcs are drawn in the browser before the server hears of it.

    Args:
        answer: what it was drawn from; its files say so.
        key: unique on the page.
        on_token: called with the newly chosen token, before the page runs.
    """

    def heard() -> None:
        token = (st.session_state.get(key) or {}).get("token")
        if isinstance(token, int) and 0 <= token < len(figure.labels):
            on_token(token)

    registered("arcs", *_ASSETS)(
        key=key, data=figure.to_bytes(caption=caption_of(answer.arguments)), on_token_change=heard
    )


def export_arcs(figure: ArcsFigure, answer: Answer[Any], *, key: str, title: str) -> None:
    """Offer the weights as CSV and .npz, the figure as a page of its own, and the script.

    PNG and SVG are made by the figure itself, in the browser.
    """
    caption, chosen = caption_of(answer.arguments), language()  # files are made where no page is
    files: Files = {
        "csv": lambda: to_csv(figure.weights, figure.labels, figure.labels).encode("utf-8-sig"),
        "npz": lambda: to_npz(answer.arrays),
        "html": lambda: to_html(figure, title=title, language=chosen, caption=caption),
    }
    offer_files(lambda: files | code_files(answer), key=key, stem=figure.filename, note=t("export.note"))
