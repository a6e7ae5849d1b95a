"""Square matrices between the tokens of a sentence, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pages.figures.matrix import Axis, Kind, MatrixFigure, Panel, Role, Scale


@dataclass(frozen=True, eq=False)
class Square:
    """One matrix between tokens.

    Shapes:
        values: (query_pos, key_pos)
    """

    name: str
    title: str
    values: np.ndarray
    kind: Kind = "probability"
    role: Role = "weights"


def squares(
    matrices: Sequence[Square],
    labels: tuple[str, ...],
    *,
    axes: tuple[str, str],
    quantity: str,
    note: str,
    filename: str,
    columns: int = 0,
    same_scale: bool = False,
) -> MatrixFigure:
    """Draw matrices between the same tokens side by side.

    Args:
        matrices: of one shape; of fewer rows than labels, the first tokens alone are queries.
        axes: titles of the vertical and the horizontal axis.
        same_scale: signed matrices share one scale, so that they can be compared.
    """
    signed = [matrix.values for matrix in matrices if matrix.kind == "signed"]

    def scale(matrix: Square) -> Scale:
        return Scale.of(matrix.kind, *(signed if same_scale and matrix.kind == "signed" else [matrix.values]))

    panels = tuple(
        Panel(id=matrix.name, title=matrix.title, values=matrix.values, scale=scale(matrix), role=matrix.role)
        for matrix in matrices
    )
    down, across = axes
    return MatrixFigure(
        panels,
        Axis(down, labels[: len(matrices[0].values)]),
        Axis(across, labels),
        columns=columns,
        link="why",
        quantity=quantity,
        note=note,
        filename=filename,
    )
