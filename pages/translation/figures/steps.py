"""A translation as charts: lines between two sentences, and the likeliest words of a step.

Arrays come from transformer_core.analysis.translation.

The toy batch as matrices: its ids, and mask beside weights for the three attentions.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

LINE = 26
LEAST_DRAWN = 0.05
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
    """Draw the source, the words written so far, and a line from each of these to where it looks.

    Shapes:
        weights: (step, source_pos), from 0 to 1

    Args:
        source, words: labels; of the words only those up to `step` are drawn.
        said: source, target, weight: titles.
        step: whose lines stand out; point at another word and its own do.
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
    height = LINE * _rounded_up(most, max(1, most // 8)) + 8  # one word more shall not begin the chart anew
    return Filled(_lines(tuple(said.items())), {"lines": lines, "sources": sources, "targets": targets}, height=height)


@form
def _lines(titles: tuple[tuple[str, str], ...]) -> Chart:
    said = dict(titles)
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
    rules = rules.encode(x=x, y=y, x2="x2:Q", y2="y2:Q", opacity=shown, strokeWidth=width, tooltip=looks)

    sources = named("sources").encode(y=y, tooltip=[alt.Tooltip("whole:N", title=said["source"]), looks[-1]])
    names = sources.mark_text(align="right", fontSize=14, color=HUES["key"]).encode(x=x, text="source:N")
    numbers = sources.encode(x=alt.X("far:Q", axis=None), text="number:N")
    bold = numbers.transform_filter("datum.strong").mark_text(
        align="left", fontSize=13, color=NUMBERS, fontWeight="bold"
    )
    weak = numbers.transform_filter("!datum.strong").mark_text(align="left", fontSize=13, color=NUMBERS)

    hover = alt.selection_point(name="pointed", fields=["step"], on="pointerover", clear="pointerout", empty=False)
    size = alt.condition("datum.now", alt.value(18), alt.value(14))
    told = [alt.Tooltip("step:Q", title="k"), alt.Tooltip("whole:N", title=said["target"])]
    targets = named("targets").mark_text(align="left", color=HUES["query"], cursor="pointer")
    targets = targets.encode(x=x, y=y, text="word:N", size=size, tooltip=told).add_params(hover)
    return alt.layer(rules, names, bold, weak, targets)


def likeliest_bars(
    labels: Sequence[str], probabilities: np.ndarray, said: Mapping[str, str], *, written: int = 0
) -> Filled:
    """Draw the likeliest words of one step as bars, in order.

    Shapes:
        probabilities: (rank,), falling

    Args:
        said: word, probability, and marks of the one that was written and of the others: written, passed.
        written: the rank of the word that was written.
    """
    names = [f"{rank + 1} · {clipped(label)}" for rank, label in enumerate(labels)]
    is_written = [said["written"] if rank == written else said["passed"] for rank in range(len(names))]
    words = records(
        word=names,
        whole=list(labels),
        probability=probabilities.astype(float),
        kind=is_written,
        place=list(range(len(names))),
    )
    return Filled(_likeliest(tuple(said.items())), {"words": words}, height=26 * len(names) + 90)


@form
def _likeliest(titles: tuple[tuple[str, str], ...]) -> Chart:
    said = dict(titles)
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
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=[said["written"], said["passed"]], range=[HUES["query"], HUES["residual"]]),
        legend=alt.Legend(orient="top", direction="horizontal"),
    )
    base = named("words").encode(x=x, y=y, tooltip=tooltip)
    bars = base.mark_bar(height=15, cornerRadiusEnd=3).encode(color=colour)
    numbers = base.mark_text(align="left", dx=5, fontSize=12).encode(text=alt.Text("probability:Q", format=".1%"))
    return alt.layer(bars, numbers)


ATTENTIONS = ("encoder_self", "decoder_self", "cross")
PARTS = ("mask", "weights", "filled")


def toy_ids(
    source: np.ndarray, target: np.ndarray, said: Mapping[str, str], ui: Mapping[str, str], *, version: str
) -> MatrixFigure:
    """Draw both batches of ids.

    Shapes:
        source, target: (batch, pos)

    Args:
        said: batch, pos, source, target, id.
    """
    high = float(max(source.max(), target.max(), 1))
    sides = zip(("batch", "pos"), source.shape, strict=True)
    down, across = (Axis(said[name], tuple(map(str, range(size)))) for name, size in sides)
    panels = (
        Panel("source", said["source"], source.astype(float), Scale("count", 0.0, high), role="key"),
        Panel("target", said["target"], target.astype(float), Scale("count", 0.0, high), role="query"),
    )
    return MatrixFigure(
        panels,
        down,
        across,
        ui,
        detail="exact",
        columns=1,
        quantity=said["id"],
        filename="toy_ids",
        layout="single",
        version=version,
    )


def toy_attentions(
    arrays: Mapping[str, np.ndarray],
    source_ids: np.ndarray,
    target_ids: np.ndarray,
    said: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    filled: bool,
    version: str,
    note: str,
) -> MatrixFigure:
    """Draw for each of the three attentions its mask and its weights.

    Shapes:
        arrays: ATTENTION.PART: (query_pos, key_pos); source_ids, target_ids: (pos,), of the sentence

    Args:
        said: query, key, weight, mask, weights, filled, and the three attentions.
        filled: show as well what hidden scores of -1e9 would give.
    """
    source, target = (
        tuple(f"{place}: {id_}" for place, id_ in enumerate(row.tolist())) for row in (source_ids, target_ids)
    )
    sides = {"encoder_self": (source, source), "decoder_self": (target, target), "cross": (target, source)}
    parts = PARTS if filled else PARTS[:2]
    panels = tuple(
        Panel(
            f"{name}.{part}",
            f"{said[name]} · {said[part]}",
            arrays[f"{name}.{part}"].astype(float),
            Scale("mask" if part == "mask" else "probability", 0.0, 1.0),
            rows=Axis(said["query"], sides[name][0], key=f"{name} rows"),
            cols=Axis(said["key"], sides[name][1], key=f"{name} cols"),
        )
        for name in ATTENTIONS
        for part in parts
    )
    return MatrixFigure(
        panels,
        Axis(said["query"], target),
        Axis(said["key"], source),
        ui,
        columns=len(parts),
        detail="exact",
        layout="single",
        quantity=said["weight"],
        note=note,
        filename="toy_attentions",
        version=version,
    )
