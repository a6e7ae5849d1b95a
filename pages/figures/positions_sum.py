"""Token plus position as figures: lengths and cosines a token, and one projection of the sum, row by row.

Arrays come from transformer_core.analysis.positions.sums. Read next: positions_order.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, records
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale
from pages.figures.positions import Words, lines_legend, numbered


def _by_token(
    series: Mapping[str, np.ndarray], hues: Sequence[str], labels: Sequence[str], words: Words, *, y: str
) -> alt.Chart:
    """Draw one mark a token and series, shapes and hues told apart; axis labels number equal tokens."""
    places = [f"{place} {label}" for place, label in enumerate(labels)]
    names = list(series)
    data = records(
        token=places * len(names),
        value=np.concatenate(list(series.values())).round(6),
        series=np.repeat(names, len(places)),
    )
    return (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=1.5)
        .encode(
            x=alt.X("token:N", sort=places, title=words["axis_token"], axis=alt.Axis(labelAngle=-50, labelLimit=90)),
            y=alt.Y("value:Q", title=y),
            color=alt.Color(
                "series:N",
                scale=alt.Scale(domain=names, range=list(hues)),
                title=None,
                legend=lines_legend(2),
            ),
            strokeDash=alt.StrokeDash("series:N", sort=names, title=None),
            tooltip=["token:N", "series:N", "value:Q"],
        )
        .properties(width="container", height=400)
    )


def norms_chart(
    token: np.ndarray, factor: float, position: np.ndarray, labels: Sequence[str], words: Words
) -> alt.Chart:
    """Draw the length of each token's vector before and after the factor beside that of its position, all (pos,)."""
    series = {
        words["norm_token"]: token,
        words["norm_scaled"].format(factor=f"{factor:.2f}"): token * factor,
        words["norm_position"]: position,
    }
    hues = (HUES["residual"], HUES["value"], HUES["positions"])
    return _by_token(series, hues, labels, words, y=words["axis_norm"])


def cosines_chart(token: np.ndarray, position: np.ndarray, labels: Sequence[str], words: Words) -> alt.Chart:
    """Draw the cosine of the sum to each summand, both (2, pos): unscaled, scaled."""
    series = {
        words["cosine_token_off"]: token[0],
        words["cosine_position_off"]: position[0],
        words["cosine_token_on"]: token[1],
        words["cosine_position_on"]: position[1],
    }
    hues = (HUES["residual"], HUES["positions"], HUES["value"], HUES["key"])
    return _by_token(series, hues, labels, words, y=words["axis_cosine"])


def concatenated_figure(rows: Mapping[str, np.ndarray], words: Words, ui: Words, *, version: str) -> MatrixFigure:
    """Draw named vectors, each (d_query,), one below the other on one scale."""
    values = np.stack(list(rows.values()))
    return MatrixFigure(
        (Panel("rows", words["concatenated_title"], values, Scale.of("signed", values)),),
        Axis(words["axis_vector"], tuple(rows)),
        numbered(words["axis_output"], values.shape[1]),
        ui,
        role="query",
        detail="exact",
        quantity=words["quantity_output"],
        filename="positions_concatenated",
        version=version,
    )
