"""The sinusoidal matrix as figures: its values, columns and rows, similarity over distance, and both exponents.

Arrays come from transformer_core.analysis.positions: sinusoids and exponents.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, PALETTE, Chart, records, tooltips
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

Words = Mapping[str, str]
VARIANTS = ("paper", "doubled")
FEW = 40  # positions, each of which has a point on a curve
HUES_OF_VARIANTS = [HUES["positions"], HUES["query"]]


def lines_legend(columns: int = 0, orient: Literal["top", "bottom"] = "top") -> alt.Legend:
    """Return a legend that shows strokes, so that curves differ in hue and in dash."""
    return alt.Legend(
        orient=orient, columns=columns, labelLimit=320, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=260
    )


def position_figure(
    table: np.ndarray, tokens: Sequence[str], words: Words, *, cell: tuple[int, int] | None
) -> MatrixFigure:
    """Draw the matrix of positions; the first rows have the tokens at these positions as labels.

    Args:
        table: (pos, d_model), in [-1, 1].
        tokens: of a sentence; those beyond the last position are left out.
        words: of the page.
        cell: the pinned (pos, dimension).
    """
    length, d_model = table.shape
    named = [f"{pos} {token}" for pos, token in enumerate(tokens[:length])]
    return MatrixFigure(
        (Panel("table", words["matrix_title"].format(length=length, d_model=d_model), table, Scale("signed", -1, 1)),),
        Axis(words["axis_position"], (*named, *map(str, range(len(named), length)))),
        Axis.counted(words["axis_dimension"], d_model),
        role="positions",
        cell=cell,
        link="positions",
        quantity="PE(pos, i)",
        filename="positions_matrix",
    )


def waves_chart(
    table: np.ndarray, wavelengths: np.ndarray, dimensions: Sequence[int], words: Words, *, pos: int
) -> Filled:
    """Draw chosen columns of the matrix as curves over positions, with a rule at the picked position.

    Args:
        table: (pos, d_model).
        wavelengths: (d_model,), in positions, for the legend.
        dimensions: at most as many as there are hues.
    """
    length = len(table)
    names = [words["wave_name"].format(dimension=i, wavelength=f"{wavelengths[i]:,.4g}") for i in dimensions]
    data = records(
        position=np.tile(np.arange(length), len(names)),
        value=np.concatenate([table[:, i] for i in dimensions]).round(6),
        dimension=np.repeat(names, length),
        place=np.repeat(np.arange(len(names)), length),
    )
    waves = _waves(len(names), words["axis_position"], few=length <= FEW)
    return Filled(waves, {"waves": data, "at": records(position=[pos])}, height=340)


@form
def _waves(count: int, across: str, *, few: bool) -> Chart:
    hues = alt.Scale(range=list(PALETTE[:count]))
    dashes = alt.Scale(range=[list(dash) for dash in DASHES[:count]])
    order = in_order("place")
    curves = (
        named("waves")
        .mark_line(point=few)
        .encode(
            x=alt.X("position:Q", title=across, scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title="PE(pos, i)", scale=alt.Scale(domain=[-1.05, 1.05], nice=False)),
            color=alt.Color("dimension:N", scale=hues, sort=order, title=None, legend=lines_legend(2, "bottom")),
            strokeDash=alt.StrokeDash("dimension:N", scale=dashes, sort=order, title=None),
            tooltip=tooltips("dimension:N", "position:Q", "value:Q"),
        )
    )
    return alt.layer(
        curves, named("at").mark_rule(color=HUES["positions"], strokeWidth=2).encode(x=alt.X("position:Q"))
    )


def similarity_chart(values: np.ndarray, words: Words, *, measure: str) -> Filled:
    """Draw the similarity of the first row and the row k further on, over k.

    Args:
        values: (distance,).
        measure: "cosine" or "dot", which words name.
    """
    data = records(distance=np.arange(len(values)), similarity=values.round(6))
    curve = _similarity(words["axis_distance"], words[f"similarity_{measure}"])
    return Filled(curve, {"similarity": data}, height=270)


@form
def _similarity(across: str, up: str) -> Chart:
    return (
        named("similarity")
        .mark_line(color=HUES["positions"], point=alt.OverlayMarkDef(color=HUES["positions"], size=18))
        .encode(
            x=alt.X("distance:Q", title=across, scale=alt.Scale(nice=False)),
            y=alt.Y("similarity:Q", title=up),
            tooltip=tooltips("distance:Q", "similarity:Q"),
        )
    )


def vector_chart(row: np.ndarray, words: Words, *, pair: int) -> Filled:
    """Draw one position's vector, sines and cosines in two hues, with the picked pair marked.

    Args:
        row: (d_model,).
        pair: dimensions 2 pair and 2 pair + 1 are marked.
    """
    dimensions, kinds = np.arange(len(row)), (words["sine"], words["cosine"])
    data = records(dimension=dimensions, value=row.round(6), kind=[kinds[i % 2] for i in dimensions])
    marked = records(dimension=[2 * pair, 2 * pair + 1])
    return Filled(_vector(kinds, words["axis_dimension"]), {"marked": marked, "vector": data}, height=330)


@form
def _vector(kinds: tuple[str, str], across: str) -> Chart:
    scale = alt.Scale(domain=list(kinds), range=[HUES["positions"], HUES["query"]])
    points = (
        named("vector")
        .mark_line(point=alt.OverlayMarkDef(size=24))
        .encode(
            x=alt.X("dimension:Q", title=across, scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title="PE(pos, i)", scale=alt.Scale(domain=[-1.05, 1.05], nice=False)),
            color=alt.Color("kind:N", scale=scale, sort=list(kinds), title=None, legend=lines_legend()),
            strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=list(kinds)), title=None, legend=lines_legend()),
            tooltip=tooltips("dimension:Q", "kind:N", "value:Q"),
        )
    )
    rules = named("marked").mark_rule(color=HUES["residual"], strokeDash=[3, 3]).encode(x=alt.X("dimension:Q"))
    return alt.layer(rules, points)


def exponents_figure(tables: np.ndarray, words: Words) -> MatrixFigure:
    """Draw both matrices, (variant, pos, d_model), on one scale; a cell pointed at in one is marked in the other."""
    _, length, d_model = tables.shape
    panels = tuple(
        Panel(name, words[f"variant_{name}"], table, Scale("signed", -1, 1))
        for name, table in zip(VARIANTS, tables, strict=True)
    )
    return MatrixFigure(
        panels,
        Axis.counted(words["axis_position"], length),
        Axis.counted(words["axis_dimension"], d_model),
        role="positions",
        link="exponents",
        quantity="PE(pos, i)",
        filename="positions_exponents",
    )


def _compared(x: np.ndarray, values: np.ndarray, words: Words, encoding: dict) -> alt.Chart:
    names = [words[f"variant_{name}"] for name in VARIANTS]
    data = records(
        x=np.tile(x, len(names)),
        value=values.ravel(),
        variant=np.repeat(names, len(x)),
    )
    return (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(size=16))
        .encode(
            color=alt.Color(
                "variant:N",
                scale=alt.Scale(domain=names, range=HUES_OF_VARIANTS),
                title=None,
                legend=lines_legend(1),
            ),
            strokeDash=alt.StrokeDash("variant:N", scale=alt.Scale(domain=names), title=None, legend=lines_legend(1)),
            tooltip=tooltips("variant:N", "x:Q", "value:Q"),
            **encoding,
        )
        .properties(width="container", height=340)
    )


def wavelengths_chart(wavelengths: np.ndarray, words: Words, *, length: int) -> Chart:
    """Draw wavelength, (variant, d_model) in positions, over dimension on a log axis, with the sentence's length."""
    curves = _compared(
        np.arange(wavelengths.shape[1]),
        wavelengths,
        words,
        {
            "x": alt.X("x:Q", title=words["axis_dimension"], scale=alt.Scale(nice=False)),
            "y": alt.Y(
                "value:Q",
                title=words["axis_wavelength"],
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~s", tickCount=8),
            ),
        },
    )
    mark = records(value=[length], label=[words["sentence_length"].format(length=length)])
    rule = alt.Chart(mark).mark_rule(color=HUES["residual"], strokeDash=[5, 4]).encode(y=alt.Y("value:Q"))
    text = (
        alt.Chart(mark)
        .mark_text(align="right", dx=-4, dy=9)
        .encode(y=alt.Y("value:Q"), x=alt.value("width"), text=alt.Text("label:N"))
    )
    return alt.layer(curves, rule, text).properties(width="container", height=340)


def alike_chart(cosines: np.ndarray, words: Words) -> alt.Chart:
    """Draw the cosine of PE(0) and PE(k), (variant, distance), over k."""
    return _compared(
        np.arange(cosines.shape[1]),
        cosines.round(6),
        words,
        {
            "x": alt.X("x:Q", title=words["axis_distance"], scale=alt.Scale(nice=False)),
            "y": alt.Y("value:Q", title=words["similarity_cosine"], scale=alt.Scale(zero=False)),
        },
    )
