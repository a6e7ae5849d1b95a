"""A matrix figure as one self-contained page, and the script and style that draw it."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from pages.figures.matrix import MatrixFigure
from pages.figures.standalone import COMPONENTS, joined, self_contained

ASSETS = COMPONENTS / "matrix"
DRAWING = ("unpack", "colour", "geometry", "surface", "paint", "arithmetic", "readout", "caption", "table")
SCRIPTS = (
    *DRAWING,
    "pointer",
    "painter",
    "keyboard",
    "matrix",
)  # in reading order: each imports only what comes before


def component_assets() -> tuple[str, str]:
    """Return the component's script, its modules joined into one, and its style."""
    modules = ("lasting", *(f"matrix/{name}" for name in SCRIPTS))
    return joined(modules), (ASSETS / "matrix.css").read_text(encoding="utf-8")


def to_html(figure: MatrixFigure, *, title: str, language: str = "en", caption: Sequence[str] = ()) -> str:
    """Return one self-contained page with the figure alive in it; nothing in it reaches for a network.

    Args:
        title: of the page.
        caption: lines that say what the figure is of.
    """
    script, style = component_assets()
    payload = base64.b64encode(figure.to_bytes(caption=caption)).decode()
    script += "\nstandalone(document);\n"
    data = {"payload": payload}
    return self_contained(title=title, language=language, script=script, style=style, data=data, caption=caption)
