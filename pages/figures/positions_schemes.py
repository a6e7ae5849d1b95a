"""Five schemes as figures: the scores of one word at every pair of places, and one query's row over distance.

Arrays come from transformer_core.analysis.positions.schemes. Read next: positions_sum.py.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, PALETTE, records
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Panel, Scale
from pages.figures.positions import Words, lines_legend, numbered


def schemes_figure(
    values: np.ndarray, names: Sequence[str], words: Words, ui: Words, *, shown: str, version: str
) -> MatrixFigure:
    """Draw (scheme, query_pos, key_pos).

    Args:
        values: terms, scores or weights.
        names: titles of the schemes.
        shown: "terms" (each on a scale of its own), "scores" (one scale for all) or "weights" (from 0 to 1).
        version: names this state.
    """
    one = Scale.of("probability" if shown == "weights" else "signed", values)
    panels = tuple(
        Panel(str(place), name, matrix, Scale.of("signed", matrix) if shown == "terms" else one)
        for place, (name, matrix) in enumerate(zip(names, values, strict=True))
    )
    return MatrixFigure(
        panels,
        numbered(words["axis_query"], values.shape[1]),
        numbered(words["axis_key"], values.shape[2]),
        ui,
        columns=len(panels),
        role="weights" if shown == "weights" else "positions",
        link="schemes",
        quantity=words[f"shown_{shown}"],
        filename=f"positions_schemes_{shown}",
        version=version,
    )


def distance_chart(values: np.ndarray, names: Sequence[str], words: Words, *, query: int, shown: str) -> alt.Chart:
    """Draw one query's row, (scheme, query_pos, key_pos), over how far the key stands from it.

    Terms differ in size from scheme to scheme, so each is drawn as a share of its own greatest size.
    """
    length, rows = values.shape[2], values[:, query]
    if shown == "terms":
        greatest = np.nanmax(np.abs(rows), 1, keepdims=True)
        rows = rows / np.where(greatest > 0, greatest, 1.0)
    data = records(
        offset=np.tile(np.arange(length) - query, len(names)),
        value=[None if np.isnan(x) else round(float(x), 6) for x in rows.ravel()],
        scheme=np.repeat(list(names), length),
    )
    return (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(size=14))
        .encode(
            x=alt.X("offset:Q", title=words["axis_offset"], scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title=words["axis_share" if shown == "terms" else f"shown_{shown}"]),
            color=alt.Color(
                "scheme:N",
                scale=alt.Scale(domain=list(names), range=list(PALETTE[: len(names)])),
                title=None,
                legend=lines_legend(3),
            ),
            strokeDash=alt.StrokeDash(
                "scheme:N",
                scale=alt.Scale(domain=list(names), range=[list(dash) for dash in DASHES[: len(names)]]),
                title=None,
            ),
            tooltip=["scheme:N", "offset:Q", "value:Q"],
        )
        .properties(width="container", height=340)
    )
