"""A pair's verdict as charts: by order, by hidden word and by change of the segment rows; and the rows themselves.

Arrays come from transformer_core.analysis.bert.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.bert.figures.guesses import QUARTERS, token_axis
from pages.figures.charts import HUES, INK, Chart, hued, records, tooltips
from pages.figures.likeliest import REST
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

Words = Mapping[str, str]
FIRST, SECOND = HUES["query"], HUES["positions"]
GOES = "#b5702a"  # the same hue as the verdict's bar


def verdicts_chart(names: Sequence[str], follows: np.ndarray, words: Words) -> Chart:
    """Draw the probability that the second sentence goes with the first, one bar per case; 50% is marked.

    Shapes:
        follows: (case,)

    Args:
        names: of the cases, the usual one first.
        words: axis_follows.
    """
    data = records(case=list(names), share=follows.astype(float), usual=[place == 0 for place in range(len(names))])
    base = alt.Chart(data).encode(
        y=alt.Y("case:N", sort=None, scale=alt.Scale(domain=list(names)), title=None, axis=alt.Axis(labelLimit=330)),
        x=alt.X("share:Q", title=words["axis_follows"], scale=alt.Scale(domain=[0, 1.1]), axis=QUARTERS),
        tooltip=[alt.Tooltip("case:N"), alt.Tooltip("share:Q", format=".3%", title=words["axis_follows"])],
    )
    bars = base.mark_bar(cornerRadiusEnd=3, height=20).encode(
        color=alt.condition("datum.usual", alt.value(GOES), alt.value(REST))
    )
    text = base.mark_text(align="left", dx=5, fontSize=12).encode(text=alt.Text("share:Q", format=".1%"))
    half = alt.Chart(records(share=[0.5])).mark_rule(color=REST, strokeDash=[4, 4]).encode(x=alt.X("share:Q"))
    return alt.layer(half, bars, text).properties(width="container", height=34 * len(names) + 60)


def moves_chart(
    names: Sequence[str],
    segments: np.ndarray,
    moves: np.ndarray,
    flipped: np.ndarray,
    words: Words,
    *,
    chosen: int | None,
) -> Chart:
    """Draw how far the verdict moves with each token of a pair hidden, in percentage points.

    Shapes:
        segments, moves, flipped: (token,)

    Args:
        names: the tokens, no two alike.
        words: axis_token, axis_move, sentence_a, sentence_b, flips.
        chosen: the token whose bar is ringed.
    """
    sides = (words["sentence_a"], words["sentence_b"])
    data = records(
        token=list(names),
        move=moves.astype(float),
        side=[sides[int(segment)] for segment in segments],
        mark=[words["flips"] if flips else "" for flips in flipped.tolist()],
        chosen=[place == chosen for place in range(len(names))],
    )
    base = alt.Chart(data).encode(
        x=token_axis(names, words["axis_token"]),
        y=alt.Y("move:Q", title=words["axis_move"]),
        tooltip=tooltips("token:N", "side:N", alt.Tooltip("move:Q", format="+.3f", title=words["axis_move"]), "mark:N"),
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        color=hued("side", sides, (FIRST, SECOND), labelLimit=300),
        stroke=alt.condition("datum.chosen", alt.value(HUES["weights"]), alt.value("transparent")),
        strokeWidth=alt.condition("datum.chosen", alt.value(3), alt.value(0)),
    )
    flags = base.mark_text(dy=-8, color=HUES["key"], fontSize=12, fontWeight=600).encode(text=alt.Text("mark:N"))
    zero = alt.Chart(records(move=[0.0])).mark_rule(color=REST).encode(y=alt.Y("move:Q"))
    return alt.layer(bars, zero, flags).properties(width="container", height=330)


def rows_figure(rows: np.ndarray, words: Words) -> MatrixFigure:
    """Draw the first two rows of the segment matrix and their difference on one scale.

    Shapes:
        rows: (segment, d_model)

    Args:
        words: row_a, row_b, row_difference, rows_title, axis_row, axis_dimension, axis_value.
    """
    values = np.stack([rows[0], rows[1], rows[0] - rows[1]])
    names = (words["row_a"], words["row_b"], words["row_difference"])
    return MatrixFigure(
        (Panel("segments", words["rows_title"], values, Scale.of("signed", values)),),
        Axis(words["axis_row"], names),
        Axis.counted(words["axis_dimension"], rows.shape[1]),
        role="residual",
        detail="exact",
        quantity=words["axis_value"],
        filename="bert_segment_rows",
    )


def lengths_chart(
    names: Sequence[str],
    segments: np.ndarray,
    token: np.ndarray,
    segment: np.ndarray,
    position: np.ndarray,
    words: Words,
) -> Chart:
    """Draw the length of each summand of the input at every token; shapes tell the sentences apart.

    Shapes:
        segments, token, segment, position: (pos,)

    Args:
        words: axis_token, axis_length, sum_token, sum_segment, sum_position, sentence_a, sentence_b.
    """
    series = (words["sum_token"], words["sum_segment"], words["sum_position"])
    sides = (words["sentence_a"], words["sentence_b"])
    data = records(
        token=list(names) * 3,
        length=np.concatenate([token, segment, position]).astype(float).round(5),
        part=np.repeat(series, len(names)).tolist(),
        side=[sides[int(part)] for part in segments] * 3,
    )
    base = alt.Chart(data).encode(
        x=token_axis(names, words["axis_token"]),
        y=alt.Y("length:Q", title=words["axis_length"], scale=alt.Scale(zero=True)),
        color=hued("part", series, (HUES["residual"], HUES["weights"], HUES["positions"]), labelLimit=300),
        tooltip=tooltips("token:N", "side:N", "part:N", "length:Q"),
    )
    shape = alt.Shape(
        "side:N",
        scale=alt.Scale(domain=list(sides), range=["circle", "square"]),
        title=None,
        legend=alt.Legend(orient="top", symbolFillColor=INK, symbolStrokeColor=INK, labelLimit=300),
    )
    points = base.mark_point(filled=True, size=70).encode(shape=shape)
    return alt.layer(base.mark_line(strokeWidth=1.5), points).properties(width="container", height=330)
