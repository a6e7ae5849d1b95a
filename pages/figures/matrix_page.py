"""A matrix figure as one self-contained page."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from pages.figures.matrix import MatrixFigure
from pages.figures.standalone import component_assets, self_contained


def to_html(figure: MatrixFigure, *, title: str, language: str = "en", caption: Sequence[str] = ()) -> str:
    """Return one self-contained page with the interactive figure in it, which needs no network.

    Args:
        title: of the page.
        caption: lines that say what the figure shows.
    """
    script, style = component_assets("matrix")
    payload = base64.b64encode(figure.to_bytes(caption=caption)).decode()
    script += "\nstandalone(document);\n"
    data = {"payload": payload}
    return self_contained(title=title, language=language, script=script, style=style, data=data, caption=caption)
