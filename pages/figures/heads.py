"""Attention as matrices: every head at a glance, one head large, and its five steps.

Arrays come from transformer_core.analysis.attention.heads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pages.figures.matrix import Axis, Explain, MatrixFigure, Panel, Scale, Window

STEP_NAMES = ("products", "scores", "masked_scores", "weights", "mixture")


def panel_id(layer: int, head: int) -> str:
    """Return the id of a head's panel in the grid."""
    return f"{layer}.{head}"


def layer_and_head(panel: str) -> tuple[int, int]:
    """Return layer and head of a panel's id."""
    layer, head = panel.split(".")
    return int(layer), int(head)


def head_board(panels: tuple[Panel, ...], words: Mapping[str, str], **options: Any) -> MatrixFigure:
    """Draw a cell for each head in every panel, a row for each layer.

    Shapes:
        values of every panel: (layer, head)

    Args:
        words: layer, head.
        options: of MatrixFigure.
    """
    sides = zip(("layer", "head"), panels[0].values.shape, strict=True)
    rows, cols = (Axis.counted(words[side], size) for side, size in sides)
    return MatrixFigure(panels, rows, cols, detail="exact", **options)


def heads_grid(
    weights: np.ndarray,
    labels: tuple[str, ...],
    words: Mapping[str, str],
    *,
    layer: int,
    head: int,
    note: str = "",
    same_scale: bool = True,
    tendencies: Sequence[Sequence[str]] | None = None,
    keys: tuple[str, ...] | None = None,
    filename: str = "attention_heads",
    chooses: tuple[str, ...] = (),
    groups: Sequence[str] = (),
    windows: Sequence[Window | None] = (),
) -> MatrixFigure:
    """Draw every head of every layer.

    Shapes:
        weights: (layer, head, query_pos, key_pos)

    Args:
        labels: one for each query.
        words: axis.* of the locale, and "weight", what a cell is.
        layer, head: the chosen one.
        note: the caption.
        same_scale: one scale for all heads, from 0 to 1; else each head's own, from 0 to its greatest weight.
        tendencies: by layer and head, a short name of what the head tends to do, or "".
        keys: labels of the tokens that are looked at, where they are others: cross-attention.
        filename: of exports, without ending.
        chooses: as of MatrixFigure.
        groups: by head, what those that share keys and values stand under.
        windows: by layer, as of Panel.
    """
    panels = tuple(
        Panel(
            id=panel_id(index, number),
            title=_title(number, index, words, tendencies),
            values=values,
            scale=Scale("probability", 0.0, 1.0) if same_scale else Scale.of("count", values),
            row_heading=words["layer"].format(number=index),
            group=groups[number] if groups else "",
            window=windows[index] if windows else None,
        )
        for index, layer_weights in enumerate(weights)
        for number, values in enumerate(layer_weights)
    )
    return MatrixFigure(
        panels,
        Axis(words["query"], labels),
        Axis(words["key"], labels if keys is None else keys),
        columns=weights[0].shape[0],
        selected=panel_id(layer, head),
        link="attention",
        quantity=words["weight"],
        note=note,
        filename=filename,
        chooses=chooses,
    )


def _title(head: int, layer: int, words: Mapping[str, str], tendencies: Sequence[Sequence[str]] | None) -> str:
    if tendencies is None:
        return words["head"].format(number=head)
    return f"{head} {tendencies[layer][head]}".strip()


def one_head(
    steps: Mapping[str, Any],
    labels: tuple[str, ...],
    words: Mapping[str, str],
    *,
    title: str,
    step: str,
    cell: tuple[int, int] | None,
    note: str = "",
    keys: tuple[str, ...] | None = None,
    window: Window | None = None,
) -> MatrixFigure:
    """Draw one step of one head, with the arithmetic of every cell.

    Args:
        steps: query, key, products, scores, masked_scores, weights, mixture, divisor, bias and cap of the head.
        words: axis.* of the locale, and "step" and "quantity": the title of the step and what its cells are.
        step: which of STEP_NAMES to draw.
        cell: the pinned (query_pos, key_pos).
        keys: as of heads_grid.
        window: of the head's layer, as of Panel.
    """
    values = steps[step]
    across = Axis.counted(words["dimension"], values.shape[1]) if step == "mixture" else None
    return MatrixFigure(
        (Panel(id=step, title=words["step"], values=values, scale=_scale(step, values), cols=across, window=window),),
        Axis(words["query"], labels),
        Axis(words["key"], labels if keys is None else keys),
        role="value" if step == "mixture" else "weights",
        detail="exact",
        cell=None if step == "mixture" else cell,
        link="attention",
        title=title,
        quantity=words["quantity"],
        note=note,
        filename=f"attention_{step}",
        explain=None if step == "mixture" else Explain.of(steps),
    )


def _scale(step: str, values: np.ndarray) -> Scale:
    return Scale.of("probability" if step == "weights" else "signed", values)
