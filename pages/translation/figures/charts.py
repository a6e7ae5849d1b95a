"""A translation as charts: lines between two sentences, likely words, hidden source words, and a given target.

Arrays come from transformer_core.analysis.translation.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, hued, records
from pages.figures.forms import Filled, form, in_order, named

LINE = 26
LEAST_DRAWN = 0.05
NUMBERS = "#9560da"  # the weights' hue where it is small text: as legible on dark as on light
MOST_LETTERS = 18
MOST_UPRIGHT = 40
MOST_NUMBERED = 24


def clipped(label: str) -> str:
    """Return a label short enough for a chart, without the mark of the blank before it."""
    label = label.removeprefix("␣") or label
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"


def shown_chance(chance: float, *, digits: int) -> str:
    """Return a probability as a percentage, with < or > where rounding would give 0 or 100."""
    least = 10.0 ** -(2 + digits)
    if 0 < chance < least / 2:
        return f"<{least:.{digits}%}"
    return f">{1 - least:.{digits}%}" if 1 - least / 2 <= chance < 1 else f"{chance:.{digits}%}"


def _heights(count: int) -> np.ndarray:
    return (np.arange(count) + 0.5) / count


def _rounded_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def lines_chart(
    weights: np.ndarray,
    source: Sequence[str],
    words: Sequence[str],
    said: Mapping[str, str],
    *,
    step: int,
) -> Filled:
    """Draw the source, the words written so far, and lines from each of these to the source words it looks at.

    Shapes:
        weights: (step, source_pos), from 0 to 1

    Args:
        source, words: labels; of the words only those up to `step` are drawn.
        said: source, target, weight: titles.
        step: the step whose lines stand out, unless another word is pointed at.
    """
    rows, written = weights[: step + 1], words[: step + 1]
    left, right = _heights(len(source)), _heights(len(words))[: step + 1]
    places = [(row, col) for row, col in np.argwhere(rows >= LEAST_DRAWN).tolist() if row != step]
    places += [(step, col) for col in range(len(source))]
    looks = [row for row, _ in places], [col for _, col in places]
    lines = records(
        step=looks[0],
        now=[row == step for row in looks[0]],
        word=[words[row] for row in looks[0]],
        source=[source[col] for col in looks[1]],
        weight=rows[looks].astype(float),
        y=left[looks[1]],
        y2=right[looks[0]],
        x=[0.0] * len(places),
        x2=[1.0] * len(places),
    )
    own = rows[step]
    sources = records(
        source=[clipped(label) for label in source],
        whole=list(source),
        weight=own.astype(float),
        number=[f"{weight:.2f}" for weight in own],
        strong=own >= own.max() / 2,
        y=left,
        x=[-0.02] * len(source),
        far=[-0.72] * len(source),
    )
    targets = records(
        step=list(range(step + 1)),
        now=[row == step for row in range(step + 1)],
        word=[clipped(label) for label in written],
        whole=list(written),
        y=right,
        x=[1.02] * len(written),
    )
    most = max(len(source), len(words))
    height = LINE * _rounded_up(most, max(1, most // 8)) + 8  # one more word seldom changes it
    return Filled(_lines(said), {"lines": lines, "sources": sources, "targets": targets}, height=height)


@form
def _lines(said: Mapping[str, str]) -> Chart:
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.75, 1.6]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, 1], reverse=True))
    looks = [
        alt.Tooltip("word:N", title=said["target"]),
        alt.Tooltip("source:N", title=said["source"]),
        alt.Tooltip("weight:Q", title=said["weight"], format=".4f"),
    ]
    shown = alt.condition(
        "datum.now || (isValid(pointed.step) && datum.step === pointed.step[0])",
        alt.Opacity("weight:Q", scale=alt.Scale(domain=[0, 0.6], range=[0.3, 1], clamp=True), legend=None),
        alt.value(0.2),
    )
    width = alt.StrokeWidth("weight:Q", scale=alt.Scale(domain=[0, 1], range=[0.8, 11]), legend=None)
    rules = named("lines").mark_rule(color=HUES["weights"], strokeCap="round")
    rules = rules.encode(
        x=x, y=y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"), opacity=shown, strokeWidth=width, tooltip=looks
    )

    sources = named("sources").encode(y=y, tooltip=[alt.Tooltip("whole:N", title=said["source"]), looks[-1]])
    names = sources.mark_text(align="right", fontSize=14, color=HUES["key"]).encode(x=x, text=alt.Text("source:N"))
    numbers = sources.encode(x=alt.X("far:Q", axis=None), text=alt.Text("number:N"))
    bold = numbers.transform_filter("datum.strong").mark_text(
        align="left", fontSize=13, color=NUMBERS, fontWeight="bold"
    )
    weak = numbers.transform_filter("!datum.strong").mark_text(align="left", fontSize=13, color=NUMBERS)

    hover = alt.selection_point(name="pointed", fields=["step"], on="pointerover", clear="pointerout", empty=False)
    size = alt.condition("datum.now", alt.value(18), alt.value(14))
    tooltip = [alt.Tooltip("step:Q", title="k"), alt.Tooltip("whole:N", title=said["target"])]
    targets = named("targets").mark_text(align="left", color=HUES["query"], cursor="pointer")
    targets = targets.encode(x=x, y=y, text=alt.Text("word:N"), size=size, tooltip=tooltip).add_params(hover)
    return alt.layer(rules, names, bold, weak, targets)


def likeliest_bars(labels: Sequence[str], probabilities: np.ndarray, said: Mapping[str, str]) -> Filled:
    """Draw the likeliest words of one step as bars, in order; the first of them was written.

    Shapes:
        probabilities: (rank,), falling

    Args:
        said: word, probability, and the legend: written, passed.
    """
    names = [f"{rank + 1} · {clipped(label)}" for rank, label in enumerate(labels)]
    words = records(
        word=names,
        whole=list(labels),
        probability=probabilities.astype(float),
        kind=[said["passed" if rank else "written"] for rank in range(len(names))],
        place=list(range(len(names))),
    )
    return Filled(_likeliest(said), {"words": words}, height=26 * len(names) + 90)


@form
def _likeliest(said: Mapping[str, str]) -> Chart:
    axis = alt.Axis(labelFontSize=13, labelLimit=200, labelOverlap=False)
    y = alt.Y("word:N", sort=in_order("place"), title=None, axis=axis)
    x = alt.X(
        "probability:Q",
        title=said["probability"],
        scale=alt.Scale(domain=[0, 1.12]),
        axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    tooltip = [
        alt.Tooltip("whole:N", title=said["word"]),
        alt.Tooltip("probability:Q", title=said["probability"], format=".4%"),
    ]
    kinds, hues = (said["written"], said["passed"]), (HUES["query"], HUES["residual"])
    colour = hued("kind", kinds, hues, direction="horizontal")
    base = named("words").encode(x=x, y=y, tooltip=tooltip)
    bars = base.mark_bar(height=15, cornerRadiusEnd=3).encode(color=colour)
    numbers = base.mark_text(align="left", dx=5, fontSize=12).encode(text=alt.Text("probability:Q", format=".1%"))
    return alt.layer(bars, numbers)


def hiding_chart(weights: np.ndarray, change: np.ndarray, source: Sequence[str], said: Mapping[str, str]) -> Chart:
    """Draw each source word at its attention weight and at the change that hiding it makes.

    Shapes:
        weights, change: (source_pos,), shares

    Args:
        said: source, weight, points.
    """
    data = records(
        source=[clipped(label) for label in source],
        place=list(range(len(source))),
        weight=weights,
        points=100 * change,
        zero=[0.0] * len(source),
    )
    high = max(float(weights.max()), 0.05) * 1.15
    x = alt.X("weight:Q", title=said["weight"], scale=alt.Scale(domain=[0, high]), axis=alt.Axis(format=".2f"))
    y = alt.Y("points:Q", title=said["points"], scale=alt.Scale(padding=24), axis=alt.Axis(minExtent=46))
    tooltip = [
        alt.Tooltip("source:N", title=said["source"]),
        alt.Tooltip("weight:Q", title=said["weight"], format=".4f"),
        alt.Tooltip("points:Q", title=said["points"], format="+.2f"),
    ]
    base = alt.Chart(data).encode(x=x, tooltip=tooltip)
    stems = base.mark_rule(color=HUES["residual"], opacity=0.5).encode(y=alt.Y("zero:Q"), y2=alt.Y2("points:Q"))
    dots = base.mark_circle(size=90, color=HUES["key"], opacity=0.9).encode(y=y)
    names = base.mark_text(align="left", dx=8, dy=-7, fontSize=13, color=HUES["key"]).encode(
        y=y, text=alt.Text("source:N")
    )
    return alt.layer(stems, dots, names).properties(width="container", height=300)


def forced_bars(
    words: Sequence[str],
    probabilities: np.ndarray,
    ranks: np.ndarray,
    favourites: Sequence[str],
    favourite_probabilities: np.ndarray,
    said: Mapping[str, str],
) -> Chart:
    """Draw each given word's probability, and the model's favourite above it where that is another word.

    Shapes:
        probabilities, ranks, favourite_probabilities: (step,)

    Args:
        said: titles (word, probability, rank, favourite) and the legend of both kinds of bar (first, other).
    """
    names = [f"{place} {clipped(word)}" for place, word in enumerate(words)]
    first = ranks == 1
    data = records(
        word=names,
        probability=probabilities,
        rank=ranks,
        favourite=[clipped(word) for word in favourites],
        top=favourite_probabilities,
        line=np.where(first, np.nan, favourite_probabilities),
        number=[shown_chance(chance, digits=0) if len(names) <= MOST_NUMBERED else "" for chance in probabilities],
        kind=[said["first"] if one else said["other"] for one in first],
        over=["" if one else clipped(word) for one, word in zip(first, favourites, strict=True)],
    )
    axis = alt.Axis(
        labelAngle=-40, labelLimit=110, labelOverlap=len(names) > MOST_UPRIGHT, ticks=False, labelFontSize=13
    )
    tooltip = [
        alt.Tooltip("word:N", title=said["word"]),
        alt.Tooltip("probability:Q", title=said["probability"], format=".4%"),
        alt.Tooltip("rank:Q", title=said["rank"]),
        alt.Tooltip("favourite:N", title=said["favourite"]),
        alt.Tooltip("top:Q", title=f"{said['favourite']} · {said['probability']}", format=".2%"),
    ]
    base = alt.Chart(data).encode(x=alt.X("word:N", sort=names, title=None, axis=axis), tooltip=tooltip)
    y = alt.Y("probability:Q", title=said["probability"], scale=alt.Scale(domain=[0, 1.16]))
    y = y.axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], minExtent=46)
    kinds, hues = ("first", "other", "favourite"), ("query", "positions", "residual")
    colour = hued(
        "kind", [said[kind] for kind in kinds], [HUES[hue] for hue in hues], direction="horizontal", labelLimit=0
    )
    bars = base.mark_bar(cornerRadiusEnd=3).encode(y=y, color=colour)
    numbers = base.mark_text(dy=-8, fontSize=11).encode(y=y, color=colour, text=alt.Text("number:N"))
    ticks = base.mark_tick(thickness=3, aria=False).encode(y=alt.Y("line:Q"), color=alt.datum(said["favourite"]))
    names_over = base.mark_text(dy=-9, fontSize=12, color=HUES["residual"]).encode(
        y=alt.Y("line:Q"), text=alt.Text("over:N")
    )
    return alt.layer(bars, numbers, ticks, names_over).properties(width="container", height=300)
