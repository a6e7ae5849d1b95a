"""The encoder page's matrices: how far tokens move, what each measure says of them, and whether measures agree.

Arrays come from transformer_core.analysis.encoder. Read next: exports.py.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale

Words = Mapping[str, str]


def moves_figure(
    moves: np.ndarray, angles: np.ndarray, labels: tuple[str, ...], words: Words, ui: Words, *, version: str
) -> MatrixFigure:
    """Draw by how much each layer lengthens or bends each token's vector.

    Shapes:
        moves, angles: (layer, pos)

    Args:
        labels: one a token.
        words: layer, token, moves, angles.
    """
    panels = (
        Panel("angles", words["angles"], angles, Scale.of("count", angles)),
        Panel("moves", words["moves"], moves, Scale.of("count", moves)),
    )
    return MatrixFigure(
        panels,
        Axis(words["layer"], tuple(map(str, range(len(moves))))),
        Axis(words["token"], labels),
        ui,
        role="residual",
        detail="exact",
        layout="single",
        link="encoder_tokens",
        filename="encoder_moves",
        version=version,
    )


def measures_figure(
    values: np.ndarray, names: Sequence[str], labels: tuple[str, ...], words: Words, ui: Words, *, version: str
) -> MatrixFigure:
    """Draw what each measure says of each token, every row over its own greatest size.

    Shapes:
        values: (measure, pos)

    Args:
        names: one a measure; labels: one a token.
        words: measure, token, measures, share_of_row.
    """
    return MatrixFigure(
        (Panel("measures", words["measures"], rows_over_greatest(values), Scale("signed", -1.0, 1.0)),),
        Axis(words["measure"], tuple(names)),
        Axis(words["token"], labels),
        ui,
        detail="exact",
        layout="single",
        link="encoder_tokens",
        quantity=words["share_of_row"],
        filename="encoder_measures",
        version=version,
    )


def rows_over_greatest(values: np.ndarray) -> np.ndarray:
    """Return each row divided by its greatest size; a row of nothing but 0 stays."""
    greatest = np.nan_to_num(np.abs(values)).max(-1, keepdims=True)
    return values / np.where(greatest > 0, greatest, 1.0)


def agreement_figure(
    panels: Mapping[str, np.ndarray], names: Sequence[str], words: Words, ui: Words, *, version: str
) -> MatrixFigure:
    """Draw rank correlations, or shares, between any two measures.

    Shapes:
        every panel: (measure, measure)

    Args:
        panels: by "rho" and "same_first".
        names: one a measure.
        words: measure, other_measure, and a title for each panel.
    """
    return MatrixFigure(
        tuple(
            Panel(name, words[name], values, Scale("signed", -1.0, 1.0) if name == "rho" else Scale.of("probability"))
            for name, values in panels.items()
        ),
        Axis(words["measure"], tuple(names)),
        Axis(words["other_measure"], tuple(names)),
        ui,
        detail="exact",
        layout="single",
        link="encoder_measures",
        filename="encoder_agreement",
        version=version,
    )


def maps_figure(
    maps: np.ndarray, stages: Sequence[str], labels: tuple[str, ...], words: Words, ui: Words, *, version: str
) -> MatrixFigure:
    """Draw one measure's map at each stage of shuffling, every row over its own greatest size.

    Shapes:
        maps: (stage, pos)

    Args:
        words: stage, token, share_of_row.
    """
    return MatrixFigure(
        (Panel("maps", "", rows_over_greatest(maps), Scale("signed", -1.0, 1.0)),),
        Axis(words["stage"], tuple(stages)),
        Axis(words["token"], labels),
        ui,
        detail="exact",
        layout="single",
        link="encoder_tokens",
        quantity=words["share_of_row"],
        filename="encoder_maps",
        version=version,
    )


def spread_figure(
    spread: np.ndarray, depths: Sequence[str], labels: tuple[str, ...], words: Words, ui: Words, *, version: str
) -> MatrixFigure:
    """Draw how far the vectors of two sentences are apart at each depth and token.

    Shapes:
        spread: (depth, pair)

    Args:
        labels: one a pair.
        words: depth, token, spread.
    """
    return MatrixFigure(
        (Panel("spread", words["spread"], spread, Scale.of("count", spread)),),
        Axis(words["depth"], tuple(depths)),
        Axis(words["token"], labels),
        ui,
        role="residual",
        detail="exact",
        layout="single",
        filename="encoder_spread",
        version=version,
    )
