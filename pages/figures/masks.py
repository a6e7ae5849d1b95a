"""Masks as figures: one that is painted beside the scores and weights it leaves, and those of a batch side by side.

Arrays come from transformer_core.analysis.masks.masked_head and mask_batches. Read next: mask_charts.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Explain, Panel, Scale


@dataclass(frozen=True)
class Words:
    """The words on the figures, already in the reader's language.

    Args:
        ui: what the matrix itself says.
        query, key: names of the axes.
        target, source: names of the axes of cross-attention.
        panels: titles of the panels, by id.
    """

    ui: Mapping[str, str]
    query: str
    key: str
    target: str
    source: str
    panels: Mapping[str, str]


def painter(
    mask: np.ndarray,
    steps: Mapping[str, np.ndarray],
    divisor: float | None,
    labels: tuple[str, ...],
    words: Words,
    *,
    version: str,
    note: str,
) -> MatrixFigure:
    """Draw a mask to paint on, and the scores and weights of a head under it.

    Shapes:
        mask: (query_pos, key_pos), boolean

    Args:
        steps: query, key, scores, masked_scores and weights of the head.
        divisor: of the dot products; None where the head's arithmetic is another and cannot be shown.
        labels: one a token.
        version: names this state; set on the page once it is painted.
        note: the caption.
    """
    explain = None
    if divisor is not None:
        arrays = {name: steps[name] for name in ("query", "key", "scores", "masked_scores", "weights")}
        explain = Explain(**arrays, divisor=divisor, panels=("masked_scores", "weights"))
    scores = steps["masked_scores"]
    panels = (
        Panel("mask", words.panels["mask"], mask.astype(np.float32), Scale.of("mask")),
        Panel("masked_scores", words.panels["masked_scores"], scores, Scale.of("signed", scores)),
        Panel("weights", words.panels["weights"], steps["weights"], Scale.of("probability")),
    )
    return MatrixFigure(
        panels,
        Axis(words.query, labels),
        Axis(words.key, labels),
        words.ui,
        detail="exact",
        link="masks",
        note=note,
        filename="attention_under_a_mask",
        version=version,
        explain=explain,
        paint="mask",
    )


def batch_figure(
    arrays: Mapping[str, np.ndarray],
    source_labels: tuple[str, ...],
    target_labels: tuple[str, ...],
    words: Words,
    *,
    version: str,
    note: str,
) -> MatrixFigure:
    """Draw padding, causal and combined mask of one row of a batch, and a cross-attention's: boolean, then additive.

    Args:
        arrays: self_padding, self_causal, self_both and cross, boolean; added_padding and so on.
        source_labels: of the row, padding included.
        target_labels: of the row whose queries cross-attention asks, without padding.
        version, note: as of painter.
    """
    queries, keys = Axis(words.query, source_labels), Axis(words.key, source_labels)
    targets, sources = Axis(words.target, target_labels), Axis(words.source, source_labels, key=words.key)
    panels = tuple(
        Panel(
            id=name,
            title=words.panels[name],
            values=arrays[name].astype(np.float32),
            scale=Scale.of("added" if name.startswith("added") else "mask"),
            rows=targets if name.endswith("cross") else None,
            cols=sources if name.endswith("cross") else None,
        )
        for form in ("self", "added")
        for name in (f"{form}_padding", f"{form}_causal", f"{form}_both", "cross" if form == "self" else "added_cross")
    )
    return MatrixFigure(
        panels,
        queries,
        keys,
        words.ui,
        columns=4,
        layout="single",
        link="mask batch",
        note=note,
        filename="batch_masks",
        version=version,
    )
