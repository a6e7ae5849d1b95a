"""A text with arcs: from one word to every other, as strong as the weight between them.

Read next: pages/ui/arcs.py, which mounts it, and assets/components/arcs/, which draws it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pages.figures.matrix_bytes import Buffers, packed
from pages.figures.matrix_page import DRAWING
from pages.figures.standalone import COMPONENTS, joined, self_contained

Direction = Literal["from", "to"]
WORDS = ("label", "word", "said_from", "said_to", "save_png", "save_svg")  # attention_arcs.NAME


@dataclass(frozen=True, eq=False)
class ArcsFigure:
    """Describe the figure.

    Args:
        labels: one a token.
        glued: whether a token follows the one before without a blank.
        weights: (query_pos, key_pos), each from 0 to 1.
        source: the chosen token.
        direction: "from" draws the source's row, where it looks; "to" its column, who looks at it.
        strings: all of WORDS, in the reader's language; the {…} are filled in by the browser.
        version: names this state; `data-painted` has it and the source once they are on the screen.
        filename: of exports, without ending.
    """

    labels: tuple[str, ...]
    glued: tuple[bool, ...]
    weights: np.ndarray
    source: int
    direction: Direction
    strings: Mapping[str, str]
    version: str = ""
    filename: str = "attention_arcs"

    def __post_init__(self) -> None:
        n = len(self.labels)
        if self.weights.shape != (n, n) or len(self.glued) != n or n == 0:
            got = f"weights of shape {self.weights.shape} and {len(self.glued)} of glued"
            raise ValueError(f"{got}, needed one of each for all {n} labels")
        if not 0 <= self.source < n:
            raise ValueError(f"source={self.source} must be from 0 to {n - 1}")
        if missing := sorted(set(WORDS) - self.strings.keys()):
            raise ValueError(f"strings lacks the words {', '.join(missing)}")

    def to_bytes(self, *, caption: Sequence[str] = ()) -> bytes:
        """Return the header (JSON after its length) and the weights as float32, row after row.

        Args:
            caption: lines above the picture in its files, which say what it is of.
        """
        buffers = Buffers()
        buffers.add(np.asarray(self.weights).astype("<f4"))
        names = ("labels", "glued", "source", "direction", "version", "filename")
        header = {name: getattr(self, name) for name in names}
        return packed(
            header | {"caption": list(caption), "strings": {name: self.strings[name] for name in WORDS}}, buffers
        )


def component_assets() -> tuple[str, str]:
    """Return the component's script, joined with the modules of the matrix that it uses, and its style."""
    modules = ("lasting", *(f"matrix/{name}" for name in DRAWING), "arcs/shapes", "arcs/arcs")
    return joined(modules), (COMPONENTS / "arcs" / "arcs.css").read_text(encoding="utf-8")


def to_html(figure: ArcsFigure, *, title: str, language: str = "en", caption: Sequence[str] = ()) -> str:
    """Return one self-contained page with the figure alive in it; nothing in it reaches for a network.

    Args:
        title: of the page.
        caption: lines that say what the figure is of.
    """
    script, style = component_assets()
    payload = {"payload": base64.b64encode(figure.to_bytes(caption=caption)).decode()}
    script += "\nshowArcs(document);\n"
    return self_contained(title=title, language=language, script=script, style=style, data=payload, caption=caption)
