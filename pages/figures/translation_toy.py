"""The toy batch as matrices: its ids, and mask beside weights for the three attentions.

Arrays come from transformer_core.analysis.translation.toy_batch. Read next: exports.py.
"""

from collections.abc import Mapping

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale

ATTENTIONS = ("encoder_self", "decoder_self", "cross")
PARTS = ("mask", "weights", "filled")


def toy_ids(
    source: np.ndarray, target: np.ndarray, said: Mapping[str, str], ui: Mapping[str, str], *, version: str
) -> MatrixFigure:
    """Draw both batches of ids.

    Shapes:
        source, target: (batch, pos)

    Args:
        said: batch, pos, source, target, id.
    """
    high = float(max(source.max(), target.max(), 1))
    sides = zip(("batch", "pos"), source.shape, strict=True)
    down, across = (Axis(said[name], tuple(map(str, range(size)))) for name, size in sides)
    panels = (
        Panel("source", said["source"], source.astype(float), Scale("count", 0.0, high), role="key"),
        Panel("target", said["target"], target.astype(float), Scale("count", 0.0, high), role="query"),
    )
    return MatrixFigure(
        panels,
        down,
        across,
        ui,
        detail="exact",
        columns=1,
        quantity=said["id"],
        filename="toy_ids",
        layout="single",
        version=version,
    )


def toy_attentions(
    arrays: Mapping[str, np.ndarray],
    source_ids: np.ndarray,
    target_ids: np.ndarray,
    said: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    filled: bool,
    version: str,
    note: str,
) -> MatrixFigure:
    """Draw for each of the three attentions its mask and its weights.

    Shapes:
        arrays: ATTENTION.PART: (query_pos, key_pos); source_ids, target_ids: (pos,), of the sentence

    Args:
        said: query, key, weight, mask, weights, filled, and the three attentions.
        filled: show as well what hidden scores of -1e9 would give.
    """
    source, target = (
        tuple(f"{place}: {id_}" for place, id_ in enumerate(row.tolist())) for row in (source_ids, target_ids)
    )
    sides = {"encoder_self": (source, source), "decoder_self": (target, target), "cross": (target, source)}
    parts = PARTS if filled else PARTS[:2]
    panels = tuple(
        Panel(
            f"{name}.{part}",
            f"{said[name]} · {said[part]}",
            arrays[f"{name}.{part}"].astype(float),
            Scale("mask" if part == "mask" else "probability", 0.0, 1.0),
            rows=Axis(said["query"], sides[name][0], key=f"{name} rows"),
            cols=Axis(said["key"], sides[name][1], key=f"{name} cols"),
        )
        for name in ATTENTIONS
        for part in parts
    )
    return MatrixFigure(
        panels,
        Axis(said["query"], target),
        Axis(said["key"], source),
        ui,
        columns=len(parts),
        detail="exact",
        layout="single",
        quantity=said["weight"],
        note=note,
        filename="toy_attentions",
        version=version,
    )
