"""The two exponents as figures: both matrices on one scale, their wavelengths, and how alike far positions become.

Arrays come from transformer_core.analysis.positions.sinusoids. Read next: positions_schemes.py.
"""

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Panel, Scale
from pages.figures.positions import Words, lines_legend, numbered

VARIANTS = ("paper", "doubled")
HUES_OF_VARIANTS = [HUES["positions"], HUES["query"]]


def exponents_figure(tables: np.ndarray, words: Words, ui: Words, *, version: str) -> MatrixFigure:
    """Draw both matrices, (variant, pos, d_model), on one scale; a cell pointed at in one is marked in the other."""
    _, length, d_model = tables.shape
    panels = tuple(
        Panel(name, words[f"variant_{name}"], table, Scale("signed", -1, 1))
        for name, table in zip(VARIANTS, tables, strict=True)
    )
    return MatrixFigure(
        panels,
        numbered(words["axis_position"], length),
        numbered(words["axis_dimension"], d_model),
        ui,
        columns=2,
        role="positions",
        layout="single",
        link="exponents",
        quantity="PE(pos, i)",
        filename="positions_exponents",
        version=version,
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
            strokeDash=alt.StrokeDash("variant:N", sort=names, title=None),
            tooltip=["variant:N", "x:Q", "value:Q"],
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
    rule = alt.Chart(mark).mark_rule(color=HUES["residual"], strokeDash=[5, 4]).encode(y="value:Q")
    text = (
        alt.Chart(mark).mark_text(align="right", dx=-4, dy=9).encode(y="value:Q", x=alt.value("width"), text="label:N")
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
