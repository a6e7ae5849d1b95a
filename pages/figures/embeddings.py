"""Embeddings as matrices: a sentence's vectors, the angles between them, and a one-hot vector that picks a row.

Arrays come from transformer_core.analysis.words.sentence_vectors and one_hot. Read next: embeddings_charts.py.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale

TOKEN = "embedding token"  # the axes with this key move together
DIMENSION = "embedding dimension"


def _dimensions(words: Mapping[str, str], size: int) -> Axis:
    return Axis(words["axis_dimension"], tuple(map(str, range(size))), DIMENSION)


def vectors_matrix(
    vectors: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str], ui: Mapping[str, str], *, version: str
) -> MatrixFigure:
    """Draw the vectors of a sentence, a token a row.

    Shapes:
        vectors: (pos, d_model)

    Args:
        labels: one a token.
        words, ui: of the page, and of the matrix itself.
        version: names this state.
    """
    return MatrixFigure(
        (Panel("vectors", "", vectors, Scale.of("signed", vectors)),),
        Axis(words["axis_token"], labels, TOKEN),
        _dimensions(words, vectors.shape[1]),
        ui,
        role="residual",
        detail="exact",
        link="embeddings",
        title=words["title_vectors"],
        quantity=words["quantity_value"],
        note=words["note_vectors"],
        filename="embedding_vectors",
        version=version,
    )


def cosine_matrix(
    cosine: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str], ui: Mapping[str, str], *, version: str
) -> MatrixFigure:
    """Draw the cosine of the angle between each two tokens' vectors, from -1 to 1.

    Shapes:
        cosine: (pos, pos)
    """
    return MatrixFigure(
        (Panel("cosine", "", cosine, Scale("signed", -1.0, 1.0)),),
        Axis(words["axis_token"], labels, TOKEN),
        Axis(words["axis_other"], labels, "embedding other"),
        ui,
        role="residual",
        detail="exact",
        link="embeddings",
        title=words["title_cosine"],
        quantity=words["quantity_cosine"],
        note=words["note_cosine"],
        filename="embedding_cosine",
        version=version,
    )


def one_hot_matrix(
    one_hot: np.ndarray,
    matrix: np.ndarray,
    ids: Sequence[int],
    labels: Sequence[str],
    words: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    version: str,
) -> MatrixFigure:
    """Draw a one-hot vector, upright, beside the rows of the matrix that it picks from.

    Shapes:
        one_hot: (row, 1); matrix: (row, d_model)
    """
    rows = Axis(words["axis_entry"], tuple(f"{id_}  {label}" for id_, label in zip(ids, labels, strict=True)), TOKEN)
    return MatrixFigure(
        (
            Panel(
                "one_hot",
                words["title_one_hot"],
                one_hot,
                Scale("probability", 0.0, 1.0),
                cols=Axis(words["axis_one_hot"], ("x",), "one-hot"),
                role="weights",
            ),
            Panel("matrix", words["title_matrix"], matrix, Scale.of("signed", matrix)),
        ),
        rows,
        _dimensions(words, matrix.shape[1]),
        ui,
        columns=2,
        role="residual",
        detail="exact",
        layout="single",
        link="embeddings",
        quantity=words["quantity_value"],
        note=words["note_one_hot"],
        filename="embedding_one_hot",
        version=version,
    )


def product_matrix(
    product: np.ndarray, row: np.ndarray, words: Mapping[str, str], ui: Mapping[str, str], *, version: str
) -> MatrixFigure:
    """Draw the product of one-hot and matrix, the row looked up, and their difference, on one scale.

    Shapes:
        product, row: (d_model,)
    """
    values = np.stack([product, row, product - row])  # (3, d_model)
    lines = tuple(words[name] for name in ("line_product", "line_row", "line_difference"))
    return MatrixFigure(
        (Panel("product", "", values, Scale.of("signed", values)),),
        Axis(words["axis_way"], lines, "embedding way"),
        _dimensions(words, len(row)),
        ui,
        role="residual",
        detail="exact",
        link="embeddings",
        title=words["title_product"],
        quantity=words["quantity_value"],
        note=words["note_product"],
        filename="embedding_product",
        version=version,
    )
