"""Attention of a translator as matrices: the rows of a step, the mean over heads, and the toy batch with its masks.

Arrays come from transformer_core.analysis.translation.
"""

from collections.abc import Mapping

import numpy as np

from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

ATTENTIONS = ("encoder_self", "decoder_self", "cross")
PARTS = ("mask", "weights", "filled")


def step_rows(
    self_row: np.ndarray,
    cross_row: np.ndarray,
    read: tuple[str, ...],
    source: tuple[str, ...],
    said: Mapping[str, str],
) -> MatrixFigure:
    """Draw one step's rows of one layer, one row for each head, over the words read so far and over the source.

    Shapes:
        self_row: (head, step); cross_row: (head, source_pos)

    Args:
        said: head, mean, read, source, self, cross, weight: names of axes and panels.
    """
    rows = Axis(said["head"], (*map(str, range(len(self_row))), said["mean"]))
    panels = tuple(
        Panel(
            name,
            said[name],
            np.concatenate([values, values.mean(0, keepdims=True)]),
            Scale("probability", 0.0, 1.0),
            cols=Axis(said[axis], labels, key=axis),
        )
        for name, axis, values, labels in (("self", "read", self_row, read), ("cross", "source", cross_row, source))
    )
    return MatrixFigure(
        panels,
        rows,
        Axis(said["source"], source, key="source"),
        detail="exact",
        quantity=said["weight"],
        filename="translation_step",
    )


def mean_matrix(
    weights: np.ndarray,
    words: tuple[str, ...],
    source: tuple[str, ...],
    said: Mapping[str, str],
    *,
    title: str,
    note: str = "",
) -> MatrixFigure:
    """Draw the cross-attention of each written word, mean over heads.

    Shapes:
        weights: (step, source_pos)

    Args:
        said: query, key, weight.
    """
    return MatrixFigure(
        (Panel("mean", title, weights, Scale("probability", 0.0, 1.0)),),
        Axis(said["query"], words),
        Axis(said["key"], source),
        detail="exact",
        link="attention",
        quantity=said["weight"],
        note=note,
        filename="translation_mean",
    )


def toy_ids(source: np.ndarray, target: np.ndarray, said: Mapping[str, str]) -> MatrixFigure:
    """Draw the ids of the source and of the target batch.

    Shapes:
        source, target: (batch, pos)

    Args:
        said: batch, pos, source, target, id.
    """
    high = float(max(source.max(), target.max(), 1))
    sides = zip(("batch", "pos"), source.shape, strict=True)
    down, across = (Axis.counted(said[name], size) for name, size in sides)
    panels = (
        Panel("source", said["source"], source.astype(float), Scale("count", 0.0, high), role="key"),
        Panel("target", said["target"], target.astype(float), Scale("count", 0.0, high), role="query"),
    )
    return MatrixFigure(
        panels,
        down,
        across,
        detail="exact",
        columns=1,
        quantity=said["id"],
        filename="toy_ids",
    )


def toy_logits(
    logits: np.ndarray,
    target: np.ndarray,
    said: Mapping[str, str],
) -> MatrixFigure:
    """Draw the logits of each sentence's target positions, all on one scale.

    Shapes:
        logits: (batch, pos, vocab); target: (batch, pos)

    Args:
        said: batch, read, next, logit, logits.
    """
    scale = Scale.of("signed", logits)
    words = Axis.counted(said["next"], logits.shape[-1])
    panels = tuple(
        Panel(
            f"logits.{sentence}",
            f"{said['batch']} {sentence}",
            values.astype(float),
            scale,
            rows=Axis(
                said["read"], tuple(f"{place}: {id_}" for place, id_ in enumerate(ids)), key=f"logits {sentence}"
            ),
        )
        for sentence, (values, ids) in enumerate(zip(logits, target.tolist(), strict=True))
    )
    return MatrixFigure(
        panels,
        words,
        words,
        role="residual",
        detail="exact",
        layout="single",
        title=said["logits"],
        quantity=said["logit"],
        filename="toy_logits",
    )


def toy_attentions(
    arrays: Mapping[str, np.ndarray],
    source_ids: np.ndarray,
    target_ids: np.ndarray,
    said: Mapping[str, str],
    *,
    filled: bool,
    note: str,
) -> MatrixFigure:
    """Draw the mask and the weights of each of the three attentions.

    Shapes:
        arrays: ATTENTION.PART: (query_pos, key_pos); source_ids, target_ids: (pos,), of the sentence

    Args:
        said: query, key, weight, mask, weights, filled, and the three attentions.
        filled: show the weights with hidden scores of -1e9 instead of -inf, too.
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
        columns=len(parts),
        detail="exact",
        layout="single",
        quantity=said["weight"],
        note=note,
        filename="toy_attentions",
    )
