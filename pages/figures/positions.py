"""Positions as figures: the sinusoidal matrix, its waves, its rows and how alike they are.

Arrays come from transformer_core.analysis.positions.sinusoids. Read next: positions_exponent.py.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, PALETTE, Chart, records
from pages.figures.forms import kept
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale

Words = Mapping[str, str]


def lines_legend(columns: int = 0, orient: Literal["top", "bottom"] = "top") -> alt.Legend:
    """Return a legend that shows strokes, so that hue and dash both tell the curves apart."""
    return alt.Legend(
        orient=orient, columns=columns, labelLimit=320, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=260
    )


def numbered(name: str, count: int, *, key: str = "") -> Axis:
    """Return an axis whose labels are 0, 1, 2, ..."""
    return Axis(name, tuple(map(str, range(count))), key)


def position_figure(
    table: np.ndarray, tokens: Sequence[str], words: Words, ui: Words, *, cell: tuple[int, int] | None, version: str
) -> MatrixFigure:
    """Draw the matrix of positions, the first ones with the tokens that stand there.

    Args:
        table: (pos, d_model), in [-1, 1].
        tokens: of a sentence; those beyond the last position are left out.
        words: of the page.
        ui: what the matrix itself says.
        cell: the pinned (pos, dimension).
        version: names this state.
    """
    length, d_model = table.shape
    named = [f"{pos} {token}" for pos, token in enumerate(tokens[:length])]
    return MatrixFigure(
        (Panel("table", words["matrix_title"].format(length=length, d_model=d_model), table, Scale("signed", -1, 1)),),
        Axis(words["axis_position"], (*named, *map(str, range(len(named), length)))),
        numbered(words["axis_dimension"], d_model),
        ui,
        role="positions",
        detail="exact" if table.size <= 1 << 15 else "quantised",
        cell=cell,
        link="positions",
        quantity="PE(pos, i)",
        filename="positions_matrix",
        version=version,
    )


@kept
def waves_chart(
    table: np.ndarray, wavelengths: np.ndarray, dimensions: Sequence[int], words: Words, *, pos: int
) -> Chart:
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
    )
    scale = alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
    dashes = alt.Scale(domain=names, range=[list(dash) for dash in DASHES[: len(names)]])
    curves = (
        alt.Chart(data)
        .mark_line(point=length <= 40)
        .encode(
            x=alt.X("position:Q", title=words["axis_position"], scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title="PE(pos, i)", scale=alt.Scale(domain=[-1.05, 1.05], nice=False)),
            color=alt.Color("dimension:N", scale=scale, sort=names, title=None, legend=lines_legend(2, "bottom")),
            strokeDash=alt.StrokeDash("dimension:N", scale=dashes, sort=names, title=None),
            tooltip=["dimension:N", "position:Q", "value:Q"],
        )
    )
    rule = alt.Chart(records(position=[pos])).mark_rule(color=HUES["positions"], strokeWidth=2).encode(x="position:Q")
    return alt.layer(curves, rule).properties(width="container", height=340)


@kept
def similarity_chart(values: np.ndarray, words: Words, *, measure: str) -> alt.Chart:
    """Draw how alike the first row and the row k further on are, over k.

    Args:
        values: (distance,).
        measure: "cosine" or "dot", which words name.
    """
    data = records(distance=np.arange(len(values)), similarity=values.round(6))
    return (
        alt.Chart(data)
        .mark_line(color=HUES["positions"], point=alt.OverlayMarkDef(color=HUES["positions"], size=18))
        .encode(
            x=alt.X("distance:Q", title=words["axis_distance"], scale=alt.Scale(nice=False)),
            y=alt.Y("similarity:Q", title=words[f"similarity_{measure}"]),
            tooltip=["distance:Q", "similarity:Q"],
        )
        .properties(width="container", height=270)
    )


@kept
def vector_chart(row: np.ndarray, words: Words, *, pair: int) -> Chart:
    """Draw one position's vector, sines and cosines told apart, with the picked pair marked.

    Args:
        row: (d_model,).
        pair: dimensions 2 pair and 2 pair + 1 are marked.
    """
    dimensions = np.arange(len(row))
    kinds = [words["sine"], words["cosine"]]
    data = records(
        dimension=dimensions,
        value=row.round(6),
        kind=[kinds[i % 2] for i in dimensions],
    )
    scale = alt.Scale(domain=kinds, range=[HUES["positions"], HUES["query"]])
    points = (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(size=24))
        .encode(
            x=alt.X("dimension:Q", title=words["axis_dimension"], scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title="PE(pos, i)", scale=alt.Scale(domain=[-1.05, 1.05], nice=False)),
            color=alt.Color("kind:N", scale=scale, sort=kinds, title=None, legend=lines_legend()),
            strokeDash=alt.StrokeDash("kind:N", sort=kinds, title=None),
            tooltip=["dimension:Q", "kind:N", "value:Q"],
        )
    )
    marked = records(dimension=[2 * pair, 2 * pair + 1])
    rules = alt.Chart(marked).mark_rule(color=HUES["residual"], strokeDash=[3, 3]).encode(x="dimension:Q")
    return alt.layer(rules, points).properties(width="container", height=330)
