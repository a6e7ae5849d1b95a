"""Positions in models as figures: five schemes of scores, token plus position, and what order is worth.

Arrays come from transformer_core.analysis.positions: schemes, sums and order_effect.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, dashes_of, records, tooltips
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale
from pages.positions.figures.sinusoids import Words, lines_legend

ALIKE = ("kept", "positions_removed")  # the seed makes no difference to these


def schemes_figure(values: np.ndarray, names: Sequence[str], words: Words, *, shown: str) -> MatrixFigure:
    """Draw the values (scheme, query_pos, key_pos) of every scheme side by side.

    Args:
        values: terms, scores or weights.
        names: titles of the schemes.
        shown: "terms" (each on a scale of its own), "scores" (one scale for all) or "weights" (from 0 to 1).
    """
    one = Scale.of("probability" if shown == "weights" else "signed", values)
    panels = tuple(
        Panel(str(place), name, matrix, Scale.of("signed", matrix) if shown == "terms" else one)
        for place, (name, matrix) in enumerate(zip(names, values, strict=True))
    )
    return MatrixFigure(
        panels,
        Axis.counted(words["axis_query"], values.shape[1]),
        Axis.counted(words["axis_key"], values.shape[2]),
        role="weights" if shown == "weights" else "positions",
        link="schemes",
        quantity=words[f"shown_{shown}"],
        filename=f"positions_schemes_{shown}",
    )


def distance_chart(values: np.ndarray, names: Sequence[str], words: Words, *, query: int, shown: str) -> Filled:
    """Draw one query's row of (scheme, query_pos, key_pos) over the distance of the key.

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
    titles = words["axis_offset"], words["axis_share" if shown == "terms" else f"shown_{shown}"]
    return Filled(_distances(tuple(names), titles), {"distances": data}, height=340)


@form
def _distances(names: Sequence[str], titles: tuple[str, str]) -> alt.Chart:
    return (
        named("distances")
        .mark_line(point=alt.OverlayMarkDef(size=14))
        .encode(
            x=alt.X("offset:Q", title=titles[0], scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title=titles[1]),
            color=alt.Color(
                "scheme:N",
                scale=alt.Scale(domain=list(names), range=list(PALETTE[: len(names)])),
                title=None,
                legend=lines_legend(3),
            ),
            strokeDash=alt.StrokeDash(
                "scheme:N",
                scale=dashes_of(names),
                title=None,
                legend=lines_legend(3),
            ),
            tooltip=tooltips("scheme:N", "offset:Q", "value:Q"),
        )
    )


def _by_token(
    series: Mapping[str, np.ndarray], hues: Sequence[str], labels: Sequence[str], words: Words, *, y: str
) -> Filled:
    """Draw one mark for each token and series; the labels have the place, since tokens may be equal."""
    places = [f"{place} {label}" for place, label in enumerate(labels)]
    names = list(series)
    data = records(
        token=places * len(names),
        value=np.concatenate(list(series.values())).round(6),
        series=np.repeat(names, len(places)),
        place=list(range(len(places))) * len(names),
    )
    return Filled(_tokens(tuple(names), tuple(hues), words["axis_token"], y), {"tokens": data}, height=400)


@form
def _tokens(names: Sequence[str], hues: Sequence[str], across: str, up: str) -> alt.Chart:
    return (
        named("tokens")
        .mark_line(point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=1.5)
        .encode(
            x=alt.X("token:N", sort=in_order("place"), title=across, axis=alt.Axis(labelAngle=-50, labelLimit=90)),
            y=alt.Y("value:Q", title=up),
            color=alt.Color(
                "series:N",
                scale=alt.Scale(domain=list(names), range=list(hues)),
                title=None,
                legend=lines_legend(2),
            ),
            strokeDash=alt.StrokeDash(
                "series:N", scale=alt.Scale(domain=list(names)), title=None, legend=lines_legend(2)
            ),
            tooltip=tooltips("token:N", "series:N", "value:Q"),
        )
    )


def norms_chart(token: np.ndarray, factor: float, position: np.ndarray, labels: Sequence[str], words: Words) -> Filled:
    """Draw the length of each token's vector before and after the factor beside that of its position, all (pos,)."""
    series = {
        words["norm_token"]: token,
        words["norm_scaled"].format(factor=f"{factor:.2f}"): token * factor,
        words["norm_position"]: position,
    }
    hues = (HUES["residual"], HUES["value"], HUES["positions"])
    return _by_token(series, hues, labels, words, y=words["axis_norm"])


def cosines_chart(token: np.ndarray, position: np.ndarray, labels: Sequence[str], words: Words) -> Filled:
    """Draw the cosine of the sum to each summand, both (2, pos): unscaled, scaled."""
    series = {
        words["cosine_token_off"]: token[0],
        words["cosine_position_off"]: position[0],
        words["cosine_token_on"]: token[1],
        words["cosine_position_on"]: position[1],
    }
    hues = (HUES["residual"], HUES["positions"], HUES["value"], HUES["key"])
    return _by_token(series, hues, labels, words, y=words["axis_cosine"])


def concatenated_figure(rows: Mapping[str, np.ndarray], words: Words) -> MatrixFigure:
    """Draw named vectors, each (d_query,), as rows on one scale."""
    values = np.stack(list(rows.values()))
    return MatrixFigure(
        (Panel("rows", words["concatenated_title"], values, Scale.of("signed", values)),),
        Axis(words["axis_vector"], tuple(rows)),
        Axis.counted(words["axis_output"], values.shape[1]),
        role="query",
        detail="exact",
        quantity=words["quantity_output"],
        filename="positions_concatenated",
    )


def order_chart(
    values: np.ndarray, treatments: Sequence[str], words: Words, *, axis: str, whole: bool = False, title: str = ""
) -> Chart:
    """Draw the mean of each treatment as a bar, its range as a whisker, and each seed as a point.

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
        tooltip=tooltips("treatment:N", "mean:Q", "least:Q", "most:Q"),
    )
    whisker = base.mark_rule(strokeWidth=2, color="#8a8a8a").encode(x=x, y=alt.Y("least:Q"), y2=alt.Y2("most:Q"))
    figures = base.mark_text(dy=-8, dx=26).encode(x=x, y=alt.Y("mean:Q"), text=alt.Text("label:N"))
    dots = (
        alt.Chart(points)
        .mark_point(size=22, filled=False, color="#7a7a7a")
        .encode(x=x, y=alt.Y("value:Q"), tooltip=tooltips("treatment:N", "value:Q"))
    )
    return alt.layer(drawn, whisker, dots, figures).properties(width="container", height=340, title=title)
