"""One-hot vectors beside learned ones, as two matrices that share their cell.

Arrays come from transformer_core.analysis.words.one_hot. Read next: matrix.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale

MEASURES = ("vectors", "cosine", "distance")


@dataclass(frozen=True)
class Words:
    """The words on the figure.

    Args:
        ui: what the matrix itself says.
        one_hot, learned: titles of the panels.
        token, other, column, dimension: names of the axes.
        quantities: what a cell is, by measure.
    """

    ui: Mapping[str, str]
    one_hot: str
    learned: str
    token: str
    other: str
    column: str
    dimension: str
    quantities: Mapping[str, str]


def one_hot_figure(
    one_hot: np.ndarray,
    learned: np.ndarray,
    labels: Sequence[str],
    ids: Sequence[int],
    words: Words,
    *,
    measure: str,
    version: str,
    note: str = "",
) -> MatrixFigure:
    """Draw both kinds of vectors side by side, or what each says of every two tokens.

    Shapes:
        one_hot: (token, token)
        learned: (token, d_model) for "vectors", else (token, token)

    Args:
        measure: one of MEASURES.
        version: names this state.
        note: the caption.
    """
    tokens = Axis(words.token, tuple(labels))
    others = Axis(words.other, tuple(labels))
    columns = Axis(words.column, tuple(map(str, ids)))
    dimensions = Axis(words.dimension, tuple(map(str, range(learned.shape[1]))))
    if measure == "vectors":
        scales = Scale("probability", 0.0, 1.0), Scale.of("signed", learned)
    elif measure == "cosine":
        scales = (Scale("signed", -1.0, 1.0),) * 2
    else:
        scales = (Scale.of("count", one_hot, learned),) * 2
    across = (columns, dimensions) if measure == "vectors" else (others, others)
    return MatrixFigure(
        tuple(
            Panel(id=name, title=title, values=values, scale=scale, cols=cols)
            for name, title, values, scale, cols in zip(
                ("one_hot", "learned"), (words.one_hot, words.learned), (one_hot, learned), scales, across, strict=True
            )
        ),
        tokens,
        others,
        words.ui,
        role="residual",
        detail="exact",
        link="tokens",
        quantity=words.quantities[measure],
        note=note,
        filename=f"one_hot_{measure}",
        version=version,
    )
