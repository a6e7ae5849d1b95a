"""The causal mask at work: what a changed word moves, and the surprisal of a text with the mask and without it.

Arrays come from transformer_core.analysis.gpt.causality. Read next: matrix.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records
from pages.figures.gpt_lens import stage_names
from pages.figures.gpt_text import shortened
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale


def moved_board(
    masked: np.ndarray,
    unmasked: np.ndarray | None,
    before: Sequence[str],
    after: Sequence[str],
    words: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    version: str,
) -> MatrixFigure:
    """Draw how far the residual stream moves at each stage and place, with the causal mask and, if given, without.

    Differences grow by orders of magnitude from layer to layer, so that log2(1 + difference) is drawn; nothing stays 0.

    Shapes:
        masked, unmasked: (stage, pos)

    Args:
        before, after: labels of both texts.
        words: stage, place, masked, unmasked, moved, embedding, layer.
    """
    stages = tuple(stage_names(len(masked), words))
    columns = tuple(old if old == new else f"→ {new}" for old, new in zip(before, after, strict=True))
    shown = {"masked": masked} if unmasked is None else {"masked": masked, "unmasked": unmasked}
    shown = {name: np.log2(1.0 + values) for name, values in shown.items()}
    scale = Scale.of("count", *shown.values())
    panels = tuple(Panel(name, words[name], values, scale) for name, values in shown.items())
    return MatrixFigure(
        panels,
        Axis(words["stage"], stages),
        Axis(words["place"], columns),
        ui,
        role="residual",
        detail="exact",
        layout="single",
        columns=1,
        link="gpt_moved",
        quantity=words["moved"],
        filename="gpt_changed_word",
        version=version,
    )


def surprise_pairs(labels: Sequence[str], masked: np.ndarray, unmasked: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw each token's surprisal with the mask and without it.

    Shapes:
        masked, unmasked: (pos,), in bits; not a number for the first token

    Args:
        words: token, bits (short: it runs beside the chart), masked, unmasked.
    """
    names = [words["masked"], words["unmasked"]]
    tokens = [f"{place} {shortened(label)}" for place, label in enumerate(labels)]
    data = records(
        token=tokens * 2,
        bits=np.concatenate([masked, unmasked]).round(4),
        way=np.repeat(names, len(tokens)).tolist(),
    )
    overlap = "greedy" if len(tokens) > 48 else False
    axis = alt.Axis(labelAngle=-50, labelFont="monospace", labelLimit=100, labelOverlap=overlap, ticks=False)
    return (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X("token:N", sort=None, scale=alt.Scale(domain=tokens), title=words["token"], axis=axis),
            xOffset=alt.XOffset("way:N", sort=names),
            y=alt.Y("bits:Q", title=words["bits"]),
            color=alt.Color(
                "way:N",
                title=None,
                scale=alt.Scale(domain=names, range=[HUES["residual"], PALETTE[4]]),
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
            tooltip=["token:N", "way:N", alt.Tooltip("bits:Q", format=".3f", title=words["bits"])],
        )
        .properties(width="container", height=400)
    )
