"""A translation as charts: lines between two sentences, and the likeliest words of a step.

Arrays come from transformer_core.analysis.translation. Read next: translation_attention.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records

LINE = 26
LEAST_DRAWN = 0.02
NUMBERS = "#9560da"  # the weights' hue where it is small text: as legible on dark as on light
MOST_LETTERS = 18


def clipped(label: str) -> str:
    """Return a label short enough for a picture, without the mark of the blank before it."""
    label = label.removeprefix("␣") or label
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"


def shown_chance(chance: float, *, digits: int) -> str:
    """Return a probability as a percentage that rounding makes neither 0 nor 100, unless it is."""
    least = 10.0 ** -(2 + digits)
    if 0 < chance < least / 2:
        return f"<{least:.{digits}%}"
    return f">{1 - least:.{digits}%}" if 1 - least / 2 <= chance < 1 else f"{chance:.{digits}%}"


def _heights(count: int, most: int) -> np.ndarray:
    return (np.arange(count) + 0.5) * most / count


def lines_chart(
    weights: np.ndarray,
    source: Sequence[str],
    words: Sequence[str],
    said: Mapping[str, str],
    *,
    step: int,
) -> Chart:
    """Draw the source, the words written so far, and a line from each of these to where it looks.

    Shapes:
        weights: (step, source_pos), from 0 to 1

    Args:
        source, words: labels; of the words only those up to `step` are drawn.
        said: source, target, weight: titles.
        step: whose lines stand out; point at another word and its own do.
    """
    rows = weights[: step + 1]
    most = max(len(source), len(words))
    right, left = _heights(len(words), most), _heights(len(source), most)
    places = [(row, col) for row, col in np.argwhere(rows >= LEAST_DRAWN).tolist() if row != step]
    places += [(step, col) for col in range(len(source))]
    lines = records(
        step=[row for row, _ in places],
        word=[words[row] for row, _ in places],
        source=[source[col] for _, col in places],
        weight=[float(rows[place]) for place in places],
        y=[float(left[col]) for _, col in places],
        y2=[float(right[row]) for row, _ in places],
        x=[0.0] * len(places),
        x2=[1.0] * len(places),
    )
    hover = alt.selection_point(name="pointed", fields=["step"], on="pointerover", clear="pointerout", empty=False)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.75, 1.6]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, most], reverse=True))
    shown = alt.condition(
        f"datum.step === {step} || (isValid(pointed.step) && datum.step === pointed.step[0])",
        alt.Opacity("weight:Q", scale=alt.Scale(domain=[0, 0.6], range=[0.3, 1], clamp=True), legend=None),
        alt.value(0.2),
    )
    rules = (
        alt.Chart(lines)
        .mark_rule(color=HUES["weights"], strokeCap="round")
        .encode(
            x=x,
            y=y,
            x2=alt.X2("x2:Q"),
            y2=alt.Y2("y2:Q"),
            opacity=shown,
            strokeWidth=alt.StrokeWidth("weight:Q", scale=alt.Scale(domain=[0, 1], range=[0.8, 11]), legend=None),
            tooltip=[
                alt.Tooltip("word:N", title=said["target"]),
                alt.Tooltip("source:N", title=said["source"]),
                alt.Tooltip("weight:Q", title=said["weight"], format=".4f"),
            ],
        )
    )
    return alt.layer(
        rules,
        *_source_side(rows[step], source, left, said, x, y),
        _target_side(words, right, said, x, y, step).add_params(hover),
    ).properties(width="container", height=LINE * most + 8)


def _source_side(
    weights: np.ndarray, source: Sequence[str], heights: np.ndarray, said: Mapping[str, str], x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    data = records(
        source=[clipped(label) for label in source],
        whole=list(source),
        weight=weights,
        number=[f"{weight:.2f}" for weight in weights],
        y=heights,
        x=[-0.02] * len(source),
        far=[-0.72] * len(source),
    )
    top = float(weights.max())
    tooltip = [
        alt.Tooltip("whole:N", title=said["source"]),
        alt.Tooltip("weight:Q", title=said["weight"], format=".4f"),
    ]
    base = alt.Chart(data).encode(y=y, tooltip=tooltip)
    names = base.mark_text(align="right", fontSize=14, color=HUES["key"]).encode(x=x, text=alt.Text("source:N"))
    numbers = base.encode(x=alt.X("far:Q", axis=None), text=alt.Text("number:N"))
    strong, weak = (numbers.transform_filter(f"datum.weight {sign} {top / 2}") for sign in (">=", "<"))
    bold = strong.mark_text(align="left", fontSize=13, color=NUMBERS, fontWeight="bold")
    return [names, bold, weak.mark_text(align="left", fontSize=13, color=NUMBERS)]


def _target_side(
    words: Sequence[str], heights: np.ndarray, said: Mapping[str, str], x: alt.X, y: alt.Y, step: int
) -> alt.Chart:
    drawn = words[: step + 1]
    data = records(
        step=list(range(len(drawn))),
        word=[clipped(label) for label in drawn],
        whole=list(drawn),
        y=heights[: len(drawn)],
        x=[1.02] * len(drawn),
    )
    chosen = f"datum.step === {step}"
    return (
        alt.Chart(data)
        .mark_text(align="left", color=HUES["query"], cursor="pointer")
        .encode(
            x=x,
            y=y,
            text=alt.Text("word:N"),
            size=alt.condition(chosen, alt.value(18), alt.value(14)),
            tooltip=[alt.Tooltip("step:Q", title="k"), alt.Tooltip("whole:N", title=said["target"])],
        )
    )


def likeliest_bars(
    labels: Sequence[str], probabilities: np.ndarray, said: Mapping[str, str], *, written: int = 0
) -> Chart:
    """Draw the likeliest words of one step as bars, in order.

    Shapes:
        probabilities: (rank,), falling

    Args:
        said: word, probability, and marks of the one that was written and of the others: written, passed.
        written: the rank of the word that was written.
    """
    names = [f"{rank + 1} · {clipped(label)}" for rank, label in enumerate(labels)]
    is_written = [said["written"] if rank == written else said["passed"] for rank in range(len(names))]
    data = records(word=names, whole=list(labels), probability=probabilities, kind=is_written)
    y = alt.Y("word:N", sort=names, title=None, axis=alt.Axis(labelFontSize=13, labelLimit=200, labelOverlap=False))
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
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=[said["written"], said["passed"]], range=[HUES["query"], HUES["residual"]]),
        legend=alt.Legend(orient="top", direction="horizontal"),
    )
    base = alt.Chart(data).encode(x=x, y=y, tooltip=tooltip)
    bars = base.mark_bar(height=15, cornerRadiusEnd=3).encode(color=colour)
    numbers = base.mark_text(align="left", dx=5, fontSize=12).encode(text=alt.Text("probability:Q", format=".1%"))
    return alt.layer(bars, numbers).properties(width="container", height=26 * len(names) + 90)
