"""Site: what is said of one kind of observable tensor.

Read next: recurrent_sites.py.
"""

from dataclasses import dataclass
from typing import Literal

ScaleType = Literal["probability", "signed", "count", "id"]


@dataclass(frozen=True)
class Site:
    """One kind of observable tensor.

    Args:
        axes: the name of each axis, in order.
        formula: LaTeX.
        source: paper and equation or section of the formula.
        meaning: one line.
        scale: how a page may colour it.
        lens_name: the name TransformerLens gives the same tensor, or "" where it has none.
    """

    axes: tuple[str, ...]
    formula: str
    source: str
    meaning: str
    scale: ScaleType = "signed"
    lens_name: str = ""
