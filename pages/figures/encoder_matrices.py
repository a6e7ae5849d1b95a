"""The encoder page's matrices: how far tokens move, what each measure says of them, and whether measures agree.

Arrays come from transformer_core.analysis.encoder. Read next: exports.py.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Role, Scale

Words = Mapping[str, str]
SIGNED = Scale("signed", -1.0, 1.0)
TOKENS = "encoder_tokens"  # matrices over tokens show each other's cell


def _exact_figure(
    name: str,
    panels: Sequence[Panel],
    rows: Axis,
    cols: Axis,
    ui: Words,
    *,
    version: str,
    role: Role = "weights",
    link: str | None = None,
    quantity: str = "",
) -> MatrixFigure:
    return MatrixFigure(
        tuple(panels),
        rows,
        cols,
        ui,
        role=role,
        detail="exact",
        layout="single",
        link=link,
        quantity=quantity,
        filename=f"encoder_{name}",
        version=version,
    )


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
    panels = [Panel(name, words[name], x, Scale.of("count", x)) for name, x in (("angles", angles), ("moves", moves))]
    rows, cols = Axis(words["layer"], tuple(map(str, range(len(moves))))), Axis(words["token"], labels)
    return _exact_figure("moves", panels, rows, cols, ui, version=version, role="residual", link=TOKENS)


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
    panel = Panel("measures", words["measures"], rows_over_greatest(values), SIGNED)
    rows, cols, quantity = Axis(words["measure"], tuple(names)), Axis(words["token"], labels), words["share_of_row"]
    return _exact_figure("measures", [panel], rows, cols, ui, version=version, link=TOKENS, quantity=quantity)


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
    shown = [
        Panel(name, words[name], values, SIGNED if name == "rho" else Scale.of("probability"))
        for name, values in panels.items()
    ]
    rows, cols = (Axis(words[axis], tuple(names)) for axis in ("measure", "other_measure"))
    return _exact_figure("agreement", shown, rows, cols, ui, version=version, link="encoder_measures")


def maps_figure(
    maps: np.ndarray, stages: Sequence[str], labels: tuple[str, ...], words: Words, ui: Words, *, version: str
) -> MatrixFigure:
    """Draw one measure's map at each stage of shuffling, every row over its own greatest size.

    Shapes:
        maps: (stage, pos)

    Args:
        words: stage, token, share_of_row.
    """
    panel = Panel("maps", "", rows_over_greatest(maps), SIGNED)
    rows, cols, quantity = Axis(words["stage"], tuple(stages)), Axis(words["token"], labels), words["share_of_row"]
    return _exact_figure("maps", [panel], rows, cols, ui, version=version, link=TOKENS, quantity=quantity)


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
    panel = Panel("spread", words["spread"], spread, Scale.of("count", spread))
    rows, cols = Axis(words["depth"], tuple(depths)), Axis(words["token"], labels)
    return _exact_figure("spread", [panel], rows, cols, ui, version=version, role="residual")
