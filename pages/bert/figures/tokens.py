"""What is read off each token: its labels as a matrix, names marked in the text, and where an answer starts and ends.

Arrays come from transformer_core.analysis.bert.
"""

from collections.abc import Mapping, Sequence
from html import escape

import altair as alt
import numpy as np

from pages.bert.figures.guesses import numbered, token_axis
from pages.figures.charts import HUES, PALETTE, Chart, hued, records, tooltips
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

Words = Mapping[str, str]
LINE = "font-size:1.25rem;line-height:2.3;margin:0.1em 0"
MARK = "border-radius:5px;padding:0.1em 0.3em;border-bottom:3px solid {hue};background:{hue}2e"
SMALL = "font-size:0.62em;opacity:0.85;margin-left:0.35em;white-space:nowrap"


def marked_text(text: str, spans: Sequence[tuple[int, int, str, str]], hues: Mapping[str, str]) -> str:
    """Return a text as HTML with spans marked, each with a small note after it.

    Args:
        spans: start and end in characters, kind and note of each, in order and apart.
        hues: colour of each kind.
    """
    parts, done = [], 0
    for start, end, kind, note in spans:
        style = MARK.format(hue=hues[kind])
        parts += [escape(text[done:start]), f'<span style="{style}">{escape(text[start:end])}']
        parts.append(f'<span style="{SMALL}">{escape(note)}</span></span>')
        done = end
    return f'<div dir="auto" class="role-mark" style="{LINE}">{"".join(parts)}{escape(text[done:])}</div>'


def hues_of_kinds(kinds: Sequence[str]) -> dict[str, str]:
    """Return a colour for each kind of name, the same whatever the text."""
    return {kind: PALETTE[place % len(PALETTE)] for place, kind in enumerate(dict.fromkeys(kinds))}


def labels_figure(
    tokens: Sequence[str], labels: Sequence[str], probabilities: np.ndarray, words: Words
) -> MatrixFigure:
    """Draw the probability of every label at every token.

    Shapes:
        probabilities: (pos, label)

    Args:
        words: axis_token, axis_label, labels_title, axis_probability.
    """
    return MatrixFigure(
        (Panel("labels", words["labels_title"], probabilities.T, Scale.of("probability")),),
        Axis(words["axis_label"], tuple(labels)),
        Axis(words["axis_token"], tuple(numbered(tokens, range(len(tokens))))),
        role="value",
        detail="exact",
        quantity=words["axis_probability"],
        filename="bert_token_labels",
    )


def bounds_chart(
    tokens: Sequence[str], start: np.ndarray, end: np.ndarray, words: Words, *, best: tuple[int, int] | None
) -> Chart:
    """Draw the probability of each token of a passage as the start (up) and as the end (down) of the answer.

    Shapes:
        start, end: (token,)

    Args:
        words: axis_token, axis_bounds, bound_start, bound_end, bound_best.
        best: first and last token of the best valid span, which is shaded.
    """
    names = numbered(tokens, range(len(tokens)))
    sides = (words["bound_start"], words["bound_end"])
    data = records(
        token=names * 2,
        height=np.concatenate([start, -end]).astype(float),
        chance=np.concatenate([start, end]).astype(float),
        side=np.repeat(sides, len(names)).tolist(),
    )
    x = token_axis(names, words["axis_token"])
    most = max(float(start.max()), float(end.max()), 0.05) * 1.1
    bars = (
        alt.Chart(data)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=x,
            y=alt.Y(
                "height:Q",
                title=words["axis_bounds"],
                scale=alt.Scale(domain=[-most, most], nice=False),
                axis=alt.Axis(labelExpr="format(abs(datum.value), '.0%')", tickCount=6),
            ),
            color=hued("side", sides, (HUES["query"], HUES["key"]), labelLimit=300),
            tooltip=tooltips(
                "token:N", "side:N", alt.Tooltip("chance:Q", format=".2%", title=words["axis_probability"])
            ),
        )
    )
    layers = [bars]
    if best is not None:
        inside = records(token=names[best[0] : best[1] + 1])
        shade = (
            alt.Chart(inside)
            .mark_bar(opacity=0.16, color=HUES["value"], width=alt.RelativeBandSize(1))
            .encode(x=x, y=alt.value(0), y2=alt.value("height"))
        )
        layers.insert(0, shade)
    return alt.layer(*layers).properties(width="container", height=330)
