"""Vectors of words as matrices (a sentence's rows, their cosines, one-hot times matrix), bars and curves.

Arrays come from transformer_core.analysis.words: sentence_vectors, one_hot and nearest_words.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records
from pages.figures.forms import Filled, form, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

TOKEN = "embedding token"  # the axes with this key move together
DIMENSION = "embedding dimension"
HUE, MARKED = HUES["residual"], PALETTE[4]
MOST_NAMED, MOST_NUMBERED = 64, 32


def _figure(
    name: str,
    panels: tuple[Panel, ...],
    rows: Axis,
    cols: Axis,
    words: Mapping[str, str],
    *,
    quantity: str = "value",
    **fields: Any,
) -> MatrixFigure:
    """Return the figure whose note has the key note_NAME; in all of them the same token is marked at once."""
    return MatrixFigure(
        panels,
        rows,
        cols,
        role="residual",
        detail="exact",
        link="embeddings",
        quantity=words[f"quantity_{quantity}"],
        note=words[f"note_{name}"],
        filename=f"embedding_{name}",
        **fields,
    )


def vectors_matrix(vectors: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> MatrixFigure:
    """Draw the vectors of a sentence, a token a row.

    Shapes:
        vectors: (pos, d_model)

    Args:
        labels: one a token.
        words: of the page.
    """
    return _figure(
        "vectors",
        (Panel("vectors", "", vectors, Scale.of("signed", vectors)),),
        Axis(words["axis_token"], labels, TOKEN),
        Axis.counted(words["axis_dimension"], vectors.shape[1], DIMENSION),
        words,
        title=words["title_vectors"],
    )


def cosine_matrix(cosine: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> MatrixFigure:
    """Draw the cosine of the angle between each two tokens' vectors, from -1 to 1.

    Shapes:
        cosine: (pos, pos)
    """
    return _figure(
        "cosine",
        (Panel("cosine", "", cosine, Scale("signed", -1.0, 1.0)),),
        Axis(words["axis_token"], labels, TOKEN),
        Axis(words["axis_other"], labels, "embedding other"),
        words,
        title=words["title_cosine"],
        quantity="cosine",
    )


def compared_matrix(
    dots: np.ndarray,
    cosine: np.ndarray,
    labels: tuple[str, ...],
    words: Mapping[str, str],
) -> MatrixFigure:
    """Draw the dot product of each two tokens' vectors beside the cosine of their angle, each on its own scale.

    Shapes:
        dots, cosine: (pos, pos)
    """
    panels = (
        Panel("dot", words["title_dot"], dots, Scale.of("signed", dots)),
        Panel("cosine", words["title_cosine"], cosine, Scale("signed", -1.0, 1.0)),
    )
    return _figure(
        "compared",
        panels,
        Axis(words["axis_token"], labels, TOKEN),
        Axis(words["axis_other"], labels, "embedding other"),
        words,
    )


def one_hot_matrix(
    one_hot: np.ndarray,
    matrix: np.ndarray,
    ids: Sequence[int],
    labels: Sequence[str],
    words: Mapping[str, str],
) -> MatrixFigure:
    """Draw a one-hot vector, upright, beside the rows of the matrix that it picks from.

    Shapes:
        one_hot: (row, 1); matrix: (row, d_model)
    """
    rows = Axis(words["axis_entry"], tuple(f"{id_}  {label}" for id_, label in zip(ids, labels, strict=True)), TOKEN)
    return _figure(
        "one_hot",
        (
            Panel(
                "one_hot",
                words["title_one_hot"],
                one_hot,
                Scale("probability", 0.0, 1.0),
                cols=Axis(words["axis_one_hot"], ("x",), "one-hot"),
                role="weights",
            ),
            Panel("matrix", words["title_matrix"], matrix, Scale.of("signed", matrix)),
        ),
        rows,
        Axis.counted(words["axis_dimension"], matrix.shape[1], DIMENSION),
        words,
    )


def product_matrix(product: np.ndarray, row: np.ndarray, words: Mapping[str, str]) -> MatrixFigure:
    """Draw the product of one-hot and matrix, the row looked up, and their difference, on one scale.

    Shapes:
        product, row: (d_model,)
    """
    values = np.stack([product, row, product - row])  # (3, d_model)
    lines = tuple(words[name] for name in ("line_product", "line_row", "line_difference"))
    return _figure(
        "product",
        (Panel("product", "", values, Scale.of("signed", values)),),
        Axis(words["axis_way"], lines, "embedding way"),
        Axis.counted(words["axis_dimension"], len(row), DIMENSION),
        words,
        title=words["title_product"],
    )


def norm_bars(norms: np.ndarray, labels: Sequence[str], words: Mapping[str, str]) -> Filled:
    """Draw the length of each token's vector, in the order of the sentence.

    Shapes:
        norms: (pos,)
    """
    high = 1.12 * float(norms.max()) or 1.0
    rows = records(place=np.arange(len(norms)), token=labels, norm=norms, axis_end=[high] * len(norms))
    many, written = len(labels) > MOST_NAMED, len(norms) <= MOST_NUMBERED
    return Filled(_norms(words["axis_token"], words["axis_norm"], many=many, written=written), {"tokens": rows})


@form
def _norms(token: str, norm: str, *, many: bool, written: bool) -> Chart:
    named_so = "data('tokens').length > datum.value ? data('tokens')[datum.value].token : ''"
    x = alt.X("place:O", title=token, axis=alt.Axis(labelExpr=named_so, labelAngle=-40, labelOverlap=many))
    y = alt.Y("norm:Q", title=norm, scale=alt.Scale(nice=False))
    tooltip = [alt.Tooltip("token:N", title=token), alt.Tooltip("norm:Q", format=".4f")]
    tokens = named("tokens")
    bars = tokens.mark_bar(color=HUE).encode(x=x, y=y, tooltip=tooltip)
    room = tokens.mark_rule(opacity=0, aria=False, tooltip=None).encode(y=alt.Y("axis_end:Q", title=norm))
    text = tokens.mark_text(dy=-6, fontSize=11, color=HUE).encode(x=x, y=y, text=alt.Text("norm:Q", format=".2f"))
    return alt.layer(bars, room, *([text] if written else [])).properties(height=260)


def _named_axis(labels: Sequence[str], **style: Any) -> alt.Axis:
    """Return an axis that names places by labels, of which two may be the same."""
    return alt.Axis(labelExpr=f"{json.dumps(list(labels))}[datum.value]", **style)


def word_bars(
    labels: Sequence[str],
    values: np.ndarray,
    marked: Sequence[bool],
    words: Mapping[str, str],
    *,
    title: str,
    names: tuple[str, str],
    average: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> Chart:
    """Draw a value for each of some words, the first on top.

    Shapes:
        values: (word,)

    Args:
        marked: which words stand out; they have another hue and a sign before their name.
        title: of the axis, with its unit.
        names: what unmarked and marked words are, for the legend.
        average: a line to compare with, such as the mean over random pairs.
        low, high: of the axis, where it does not follow the values.
    """
    shown = [f"{'● ' if flag else ''}{label}" for label, flag in zip(labels, marked, strict=True)]
    kind = [names[int(flag)] for flag in marked]
    data = records(place=np.arange(len(values)), word=shown, value=values, kind=kind)
    axis = _named_axis(shown, labelFontSize=13, labelLimit=160, labelOverlap=False, labelFlush=False)
    y = alt.Y("place:O", title=None, axis=axis)
    domain = alt.Undefined if low is None else alt.Scale(domain=[low, high])
    x = alt.X("value:Q", title=title, scale=domain)
    legend = alt.Legend(orient="top", title=None) if any(marked) else None
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(names), range=[HUE, MARKED]), legend=legend)
    tooltip = [alt.Tooltip("word:N", title=words["axis_token"]), alt.Tooltip("value:Q", title=title, format=".4f")]
    base = alt.Chart(data)
    bars = base.mark_bar(height=14).encode(x=x, y=y, color=colour, tooltip=tooltip)
    numbers = base.mark_text(align="left", dx=4, fontSize=11).encode(
        x=x, y=y, text=alt.Text("value:Q", format=".3f"), color=colour
    )
    layers = [bars, numbers]
    if average is not None:
        line = alt.Chart(records(value=[average], label=[f"{words['average']} {average:.3f}"]))
        layers.append(
            line.mark_rule(color=PALETTE[1], strokeDash=[5, 4], size=2).encode(x=x, tooltip=alt.Tooltip("label:N"))
        )
        side = 1 if average < 0.6 * (high or float(values.max())) else -1
        name = line.mark_text(align="left" if side > 0 else "right", dx=5 * side, y=-6, color=PALETTE[1], fontSize=11)
        layers.append(name.encode(x=x, text=alt.Text("label:N")))
    return alt.layer(*layers).properties(width="container", height=26 * len(values) + (60 if any(marked) else 20))


def same_word_curve(cosine: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw the cosine between one word's two vectors: looked up, with positions, then after each layer.

    Shapes:
        cosine: (stage,)
    """
    stages = [words["stage_looked_up"], words["stage_with_positions"]]
    stages += [words["stage_layer"].format(number=number) for number in range(len(cosine) - 2)]
    data = records(place=np.arange(len(cosine)), stage=stages, cosine=cosine)
    x = alt.X("place:O", title=None, axis=_named_axis(stages, labelAngle=-25, labelOverlap=False))
    y = alt.Y("cosine:Q", title=words["quantity_cosine"], scale=alt.Scale(domain=[min(0.0, float(cosine.min())), 1.05]))
    base = alt.Chart(data).encode(x=x, y=y, tooltip=[alt.Tooltip("stage:N"), alt.Tooltip("cosine:Q", format=".4f")])
    numbers = base.mark_text(dy=-12, fontSize=12, color=HUE).encode(text=alt.Text("cosine:Q", format=".3f"))
    return alt.layer(base.mark_line(color=HUE, point=alt.OverlayMarkDef(size=70, color=HUE)), numbers).properties(
        width="container", height=260
    )
