"""What order is worth as figures: one measure under each treatment, with every shuffle as a point.

Arrays come from transformer_core.analysis.positions.order_worth.

Five schemes as figures: the scores of one word at every pair of places, and one query's row over distance.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, PALETTE, Chart, records
from pages.figures.matrix import MatrixFigure, Panel, Scale
from pages.positions.figures.waves import Words, lines_legend, numbered

ALIKE = ("kept", "positions_removed")  # the same whatever the seed


def order_chart(
    values: np.ndarray, treatments: Sequence[str], words: Words, *, axis: str, whole: bool = False, title: str = ""
) -> Chart:
    """Draw the mean of each treatment as a bar, its least and greatest as a whisker, and each seed as a point.

    Args:
        values: (treatment, seed).
        treatments: names, which words translates as treatment_NAME.
        axis: what the values are.
        whole: the axis runs from 0 to 1.
        title: printed above.
    """
    names = [words[f"treatment_{treatment}"] for treatment in treatments]
    means = values.mean(1)
    bars = records(
        treatment=names,
        mean=means.round(6),
        least=values.min(1).round(6),
        most=values.max(1).round(6),
        label=[f"{mean:.3f}" for mean in means],
    )
    seeds = [1 if treatment in ALIKE else values.shape[1] for treatment in treatments]
    points = records(
        treatment=[name for name, count in zip(names, seeds, strict=True) for _ in range(count)],
        value=[round(float(x), 6) for row, count in zip(values, seeds, strict=True) for x in row[:count]],
    )
    scale = alt.Scale(domain=[0, 1]) if whole else alt.Scale()
    x = alt.X("treatment:N", sort=names, title=None, axis=alt.Axis(labelAngle=-20, labelLimit=180, labelOverlap=False))
    base = alt.Chart(bars)
    hue = alt.Color(
        "treatment:N",
        legend=None,
        scale=alt.Scale(domain=names, range=[HUES["residual"], HUES["positions"], HUES["key"], HUES["query"]]),
    )
    drawn = base.mark_bar(size=34, opacity=0.75).encode(
        x=x,
        y=alt.Y("mean:Q", title=axis, scale=scale),
        color=hue,
        tooltip=["treatment:N", "mean:Q", "least:Q", "most:Q"],
    )
    whisker = base.mark_rule(strokeWidth=2, color="#8a8a8a").encode(x=x, y="least:Q", y2="most:Q")
    figures = base.mark_text(dy=-8, dx=26).encode(x=x, y="mean:Q", text="label:N")
    dots = (
        alt.Chart(points)
        .mark_point(size=22, filled=False, color="#7a7a7a")
        .encode(x=x, y="value:Q", tooltip=["treatment:N", "value:Q"])
    )
    return alt.layer(drawn, whisker, dots, figures).properties(width="container", height=340, title=title)


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
