"""Figures of masks: the painter beside scores and weights, a batch's masks in both forms, and losses without a mask.

Arrays come from transformer_core.analysis.masks: masked_head, batch_masks and training_without_mask.
"""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, records
from pages.figures.matrix import Axis, Explain, MatrixFigure, Panel, Scale, Window


def painter(
    mask: np.ndarray,
    steps: Mapping[str, Any],
    labels: tuple[str, ...],
    words: Mapping[str, str],
    *,
    note: str,
    window: Window | None = None,
) -> MatrixFigure:
    """Draw a mask to paint on, beside the scores and weights of a head under that mask.

    Shapes:
        mask: (query_pos, key_pos), boolean

    Args:
        steps: query, key, scores, masked_scores and weights of the head, and what Explain.of needs besides.
        labels: one for each token.
        words: masks_figure.* of the locale and the names of the axes, "query" and "key".
        note: the caption.
        window: of the head's layer, as of Panel.
    """
    scores = steps["masked_scores"]
    panels = (
        Panel("mask", words["mask"], mask.astype(np.float32), Scale.of("mask"), window=window),
        Panel("masked_scores", words["masked_scores"], scores, Scale.of("signed", scores), window=window),
        Panel("weights", words["weights"], steps["weights"], Scale.of("probability"), window=window),
    )
    return MatrixFigure(
        panels,
        Axis(words["query"], labels),
        Axis(words["key"], labels),
        detail="exact",
        link="masks",
        note=note,
        filename="attention_under_a_mask",
        explain=Explain.of(steps, ("masked_scores", "weights")),
        paint="mask",
    )


def batch_figure(
    arrays: Mapping[str, np.ndarray],
    source_labels: tuple[str, ...],
    target_labels: tuple[str, ...],
    words: Mapping[str, str],
    *,
    note: str,
) -> MatrixFigure:
    """Draw the masks of one text of a batch, of its self-attention and of cross-attention, in both forms.

    Args:
        arrays: self_padding, self_pairs, self_causal, self_both and cross, boolean; added_padding and so on.
        source_labels: of the row, padding included.
        target_labels: of the row whose queries cross-attention takes, without padding.
        words, note: as in painter.
    """
    kinds = [name.removeprefix("self_") for name in arrays if name.startswith("self_")]
    queries, keys = Axis(words["query"], source_labels), Axis(words["key"], source_labels)
    targets, sources = Axis(words["target"], target_labels), Axis(words["source"], source_labels, key=words["key"])
    panels = tuple(
        Panel(
            id=name,
            title=words[name],
            values=np.where(arrays[name] < 0, -np.inf, arrays[name]).astype(np.float32),
            scale=Scale.of("mask" if form == "self" else "large" if name == "added_pairs" else "added"),
            rows=targets if name.endswith("cross") else None,
            cols=sources if name.endswith("cross") else None,
        )
        for form in ("self", "added")
        for name in (*(f"{form}_{kind}" for kind in kinds), "cross" if form == "self" else "added_cross")
    )
    return MatrixFigure(
        panels,
        queries,
        keys,
        columns=1 + len(kinds),
        layout="single",
        link="mask batch",
        note=note,
        filename="batch_masks",
    )


SERIES = ("honest", "honest_held_out", "cheater", "cheater_masked")
HUES_OF = (HUES["query"], HUES["query"], HUES["key"], HUES["positions"])
DASHES_OF = ([1, 0], [2, 2], [1, 0], [6, 3])


def losses(arrays: Mapping[str, np.ndarray], words: Mapping[str, str]) -> alt.LayerChart | alt.FacetChart:
    """Draw the training losses of both models by step, and their losses on new text with the causal mask on.

    Args:
        arrays: honest.loss, honest.held_out, cheater.loss, cheater.held_out_masked, measured_at and guessing.
        words: the names of SERIES, "step", "loss" and "guessing".
    """
    steps = np.arange(1, len(arrays["honest.loss"]) + 1)
    at = arrays["measured_at"]
    parts = {
        "honest": (steps, arrays["honest.loss"]),
        "honest_held_out": (at, arrays["honest.held_out_masked"]),
        "cheater": (steps, arrays["cheater.loss"]),
        "cheater_masked": (at, arrays["cheater.held_out_masked"]),
    }
    data = records(
        step=np.concatenate([part[0] for part in parts.values()]),
        loss=np.concatenate([part[1] for part in parts.values()]),
        series=[words[name] for name, part in parts.items() for _ in part[0]],
    )
    names = [words[name] for name in SERIES]
    legend = alt.Legend(title=None, orient="top", columns=2, labelLimit=420, symbolStrokeWidth=3)
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title=words["step"], scale=alt.Scale(domain=[0, int(steps[-1])], nice=False)),
            y=alt.Y("loss:Q", title=words["loss"], scale=alt.Scale(zero=True)),
            color=alt.Color("series:N", scale=alt.Scale(domain=names, range=list(HUES_OF)), legend=legend),
            strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=list(DASHES_OF)), legend=legend),
            tooltip=[alt.Tooltip("series:N"), alt.Tooltip("step:Q"), alt.Tooltip("loss:Q", format=".3f")],
        )
    )
    guessing = float(arrays["guessing"])
    level = records(loss=[guessing], label=[words["guessing"]])
    rule = alt.Chart(level).mark_rule(strokeDash=[1, 3], color=HUES["residual"]).encode(y=alt.Y("loss:Q"))
    label = (
        alt.Chart(level)
        .mark_text(align="right", dy=-6)
        .encode(y=alt.Y("loss:Q"), x=alt.value("width"), text=alt.Text("label:N"))
    )
    return alt.layer(rule, label, lines).properties(width="container", height=330)
