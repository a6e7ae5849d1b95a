"""Searches by width as curves, and all targets there are as a ranked list with what each search found.

Arrays come from transformer_core.analysis.translation. Read next: translation_toy.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, PALETTE, Chart, records

LEAST_SPAN = 0.1


def _scores_domain(scores: np.ndarray) -> list[float]:
    """Return the ends of an axis of scores, at most 0, so far apart that rounding alone draws a level line."""
    low, high = float(scores.min()), float(scores.max())
    half = 0.6 * max(high - low, LEAST_SPAN)
    top = min((low + high) / 2 + half, 0.0)
    return [top - 2 * half, top]


def by_width_chart(
    widths: Sequence[int] | np.ndarray, curves: Mapping[str, np.ndarray], said: Mapping[str, str], *, percent: bool
) -> Chart:
    """Draw measures of a search by its width.

    Args:
        curves: by name, (width,); shares, or else scores, at most 0.
        said: width, value (the measure's title), and a word for each curve.
        percent: the measures are shares.
    """
    names = [said[name] for name in curves]
    values = np.concatenate(list(curves.values()))
    data = records(
        width=list(widths) * len(curves),
        value=values,
        curve=[name for name in names for _ in widths],
    )
    form = ".0%" if percent else ".2f"
    y = alt.Y(
        "value:Q",
        title=said["value"],
        scale=alt.Scale(domain=[0, 1] if percent else _scores_domain(values)),
        axis=alt.Axis(format=form, minExtent=46),
    )
    several = len(names) > 1
    legend = alt.Legend(orient="top", direction="horizontal") if several else None
    colour = alt.Color("curve:N", title=None, scale=alt.Scale(domain=names, range=list(PALETTE)), legend=legend)
    dashes = [list(dash) for dash in DASHES[: len(names)]]
    base = alt.Chart(data).encode(
        x=alt.X("width:O", title=said["width"], axis=alt.Axis(labelAngle=0)),
        y=y,
        color=colour,
        tooltip=["curve:N", "width:O", alt.Tooltip("value:Q", format=".1%" if percent else ".4f", title=said["value"])],
    )
    lines = base.mark_line(strokeWidth=2.5).encode(
        strokeDash=alt.StrokeDash("curve:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
    )
    return alt.layer(lines, base.mark_point(size=70, filled=True)).properties(width="container", height=240)


def ranked_chart(
    texts: Sequence[str], scores: np.ndarray, found_by: Sequence[str], right: Sequence[bool], said: Mapping[str, str]
) -> Chart:
    """Draw the best targets of all as bars, the shorter the better, with which searches found each.

    Shapes:
        scores: (rank,), falling, at most 0

    Args:
        found_by: for each target the searches that end with it, in words, or "".
        right: whether it is the right answer.
        said: text, score, found, missed, right.
    """
    names = [f"{rank + 1} · {text or '∅'}" for rank, text in enumerate(texts)]
    notes = [(by, said["right"] if ok else "") for by, ok in zip(found_by, right, strict=True)]
    marks = [" ".join(filter(None, note)) for note in notes]
    kinds = [said["found"] if by else said["missed"] for by in found_by]
    data = records(text=names, cost=-scores, score=scores, mark=marks, kind=kinds)
    y = alt.Y("text:N", sort=names, title=None, axis=alt.Axis(labelFontSize=13, labelLimit=200, labelOverlap=False))
    x = alt.X("cost:Q", title=said["score"], scale=alt.Scale(domain=[0, float(-scores.min()) * 1.75 or 1.0]))
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=[said["found"], said["missed"]], range=[HUES["weights"], HUES["residual"]]),
        legend=alt.Legend(orient="top", direction="horizontal"),
    )
    tooltip = [
        alt.Tooltip("text:N", title=said["text"]),
        alt.Tooltip("score:Q", title=said["score"], format=".4f"),
    ]
    base = alt.Chart(data).encode(x=x, y=y, color=colour, tooltip=tooltip)
    bars = base.mark_bar(height=15, cornerRadiusEnd=3)
    numbers = base.mark_text(align="left", dx=5, fontSize=12).encode(text="label:N")
    labelled = numbers.transform_calculate(label="format(datum.score, '.2f') + '   ' + datum.mark")
    return alt.layer(bars, labelled).properties(width="container", height=26 * len(names) + 90)
