"""Hidden words as charts: the guesses for a mask, layer by layer too, each word in turn, and one score as a sum.

Arrays come from transformer_core.analysis.bert.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, dashes_of, hued, records
from pages.figures.forms import Filled
from pages.figures.lens import lens_board, stage_names
from pages.figures.likeliest import CHANCE, REST, distinct, expected_bars

Words = Mapping[str, str]
ROW, AROUND = 36, 90
MOST_LABELS, MOST_BARS = 36, 24
QUARTERS = alt.Axis(format="~%", values=[0, 0.25, 0.5, 0.75, 1])


def numbered(labels: Sequence[str], places: Sequence[int]) -> list[str]:
    """Return labels with their places, so that no two are alike."""
    return [f"{place} {label}" for place, label in zip(places, labels, strict=True)]


def token_axis(names: Sequence[str], title: str) -> alt.X:
    """Return the axis of a sentence's tokens, in their order."""
    return alt.X(
        "token:N",
        sort=None,
        scale=alt.Scale(domain=list(names)),
        title=title,
        axis=alt.Axis(labelAngle=-45, labelLimit=110, labelOverlap=len(names) > MOST_LABELS, ticks=False),
    )


def guesses_chart(
    labels: Sequence[str],
    probabilities: np.ndarray,
    words: Words,
    *,
    true_word: tuple[str, float, int] | None,
    inside: int | None,
) -> Filled:
    """Draw the likeliest words behind a mask, the true one among or below them, and all others as one bar.

    Shapes:
        probabilities: (guess,)

    Args:
        words: as of expected_bars.
        true_word: label, probability and rank of the true word, where it is not among these.
        inside: its place among these, where it is.
    """
    rest = max(0.0, 1.0 - float(probabilities.sum()))
    return expected_bars(labels, probabilities, rest, words, came=true_word, inside=inside)


def each_chart(
    labels: Sequence[str],
    places: Sequence[int],
    probabilities: np.ndarray,
    ranks: np.ndarray,
    guesses: Sequence[str],
    guess_probabilities: np.ndarray,
    words: Words,
) -> Chart:
    """Draw the probability of each true word given all the others; above it what was guessed where that is another.

    Shapes:
        probabilities, ranks, guess_probabilities: (token,)

    Args:
        words: axis_token, axis_probability, guessed_right, guessed_wrong, guess, rank, guess_probability.
    """
    names = numbered(labels, places)
    right = (ranks == 1).tolist()
    kinds = {True: words["guessed_right"], False: words["guessed_wrong"]}
    data = records(
        token=names,
        chance=probabilities.astype(float),
        kind=[kinds[first] for first in right],
        rank=ranks,
        guess=list(guesses),
        guess_chance=guess_probabilities.astype(float),
        said=["✓" if first else guess[:12] for first, guess in zip(right, guesses, strict=True)],
    )
    base = alt.Chart(data).encode(
        x=token_axis(names, words["axis_token"]),
        y=alt.Y("chance:Q", title=words["axis_probability"], scale=alt.Scale(domain=[0, 1.08]), axis=QUARTERS),
        tooltip=[
            alt.Tooltip("token:N", title=words["axis_token"]),
            alt.Tooltip("chance:Q", format=".2%", title=words["axis_probability"]),
            alt.Tooltip("rank:Q", format=",d", title=words["rank"]),
            alt.Tooltip("guess:N", title=words["guess"]),
            alt.Tooltip("guess_chance:Q", format=".2%", title=words["guess_probability"]),
        ],
    )
    colour = hued("kind", list(kinds.values()), (HUES["value"], HUES["key"]), labelLimit=400)
    bars = base.mark_bar(cornerRadiusEnd=3).encode(color=colour)
    text = base.mark_text(dy=-8, fontSize=12).encode(text=alt.Text("said:N"))
    return alt.layer(bars, text).properties(width="container", height=340)


def board_chart(
    firsts: Sequence[Sequence[str]],
    first_probabilities: np.ndarray,
    probabilities: np.ndarray,
    ranks: np.ndarray,
    places: Sequence[int],
    labels: Sequence[str],
    answers: Sequence[str],
    words: Words,
) -> Filled:
    """Draw every stage's first guess for each token hidden by itself, coloured by the final answer's probability.

    Shapes:
        first_probabilities, probabilities, ranks: (stage, token)

    Args:
        words: as of lens_board.
    """
    arrays = (first_probabilities, probabilities, ranks)
    height = ROW * len(firsts) + 2 * AROUND
    return lens_board(firsts, *arrays, places, labels, answers, words, chosen=-1, height=height)


def _hues(count: int) -> list[str]:
    others = [CHANCE, *(hue for hue in PALETTE if hue not in (CHANCE, HUES["value"], HUES["positions"]))]
    return [others[place % len(others)] for place in range(count)]


def _mark(stage: str, first: bool, across: alt.X, said: str) -> tuple[alt.Chart, alt.Chart]:
    mark = alt.Chart(records(stage=[stage], label=[said]))
    rule = mark.mark_rule(color=HUES["positions"], strokeWidth=2, strokeDash=[5, 4]).encode(x=across)
    side = {"align": "left", "dx": 6} if first else {"align": "right", "dx": -6}
    text = mark.mark_text(color=HUES["positions"], baseline="top", fontSize=12, **side).encode(
        x=across, y=alt.value(4), text=alt.Text("label:N")
    )
    return rule, text


def follow_chart(
    words_followed: Sequence[str],
    probabilities: np.ndarray,
    ranks: np.ndarray,
    words: Words,
    *,
    true_word: int | None,
    settled: int | None,
) -> Chart:
    """Draw the probability of some words from stage to stage, and the stage from which the answer leads to the end.

    Shapes:
        probabilities, ranks: (stage, word)

    Args:
        words: axis_stage, axis_probability, embedding, layer, true_mark, settled, rank, word.
        true_word: the place of the true word among them; its name has a mark.
        settled: the stage from which the answer leads; None where it is not marked.
    """
    names = distinct(words_followed)
    if true_word is not None:
        names[true_word] = words["true_mark"].format(word=names[true_word])
    stages = stage_names(len(probabilities), words)
    data = records(
        stage=np.repeat(stages, len(names)).tolist(),
        word=names * len(stages),
        chance=probabilities.astype(float).ravel(),
        rank=ranks.ravel(),
    )
    hues = [HUES["value"] if place == true_word else hue for place, hue in enumerate(_hues(len(names)))]
    legend = alt.Legend(
        orient="right", labelFontSize=13, labelLimit=200, symbolSize=300, symbolStrokeWidth=3, symbolType="stroke"
    )
    across = alt.X(
        "stage:N",
        sort=None,
        scale=alt.Scale(domain=stages),
        title=words["axis_stage"],
        axis=alt.Axis(labelAngle=0, ticks=False),
    )
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=45, filled=True))
        .encode(
            x=across,
            y=alt.Y(
                "chance:Q", title=words["axis_probability"], scale=alt.Scale(zero=True), axis=alt.Axis(format="~%")
            ),
            color=alt.Color("word:N", scale=alt.Scale(domain=names, range=hues), title=words["word"], legend=legend),
            strokeDash=alt.StrokeDash("word:N", scale=dashes_of(names), title=words["word"]),
            tooltip=[
                alt.Tooltip("stage:N", title=words["axis_stage"]),
                alt.Tooltip("word:N", title=words["word"]),
                alt.Tooltip("chance:Q", format=".3%", title=words["axis_probability"]),
                alt.Tooltip("rank:Q", format=",d", title=words["rank"]),
            ],
        )
    )
    layers = [lines] if settled is None else [*_mark(stages[settled], settled == 0, across, words["settled"]), lines]
    return alt.layer(*layers).properties(width="container", height=340)


def products_chart(products: np.ndarray, bias: float, words: Words) -> Chart:
    """Draw the running sum of the products, the largest first, then all others as one, then the bias.

    Shapes:
        products: (d_model,)

    Args:
        words: axis_dimension, axis_score, others, bias, adds, takes, total.
    """
    order = np.argsort(-np.abs(products), kind="stable")
    shown = order[:MOST_BARS]
    steps = [float(products[dimension]) for dimension in shown]
    names = [str(dimension) for dimension in shown]
    if len(order) > len(shown):
        names.append(words["others"].format(count=len(order) - len(shown)))
        steps.append(float(products[order[MOST_BARS:]].sum()))
    names, steps = [*names, words["bias"]], [*steps, float(bias)]
    ends = np.cumsum(steps)
    data = records(
        step=names,
        low=(ends - steps).tolist(),
        high=ends.tolist(),
        value=steps,
        kind=[words["adds"] if step >= 0 else words["takes"] for step in steps],
    )
    across = alt.X(
        "step:N",
        sort=None,
        scale=alt.Scale(domain=names),
        title=words["axis_dimension"],
        axis=alt.Axis(labelAngle=-45, labelLimit=140, labelOverlap=False, ticks=False),
    )
    bars = (
        alt.Chart(data)
        .mark_bar(cornerRadius=2)
        .encode(
            x=across,
            y=alt.Y("low:Q", title=words["axis_score"]),
            y2=alt.Y2("high:Q"),
            color=hued("kind", (words["adds"], words["takes"]), (HUES["value"], HUES["key"])),
            tooltip=[
                alt.Tooltip("step:N"),
                alt.Tooltip("value:Q", format="+.5f"),
                alt.Tooltip("high:Q", format="+.5f"),
            ],
        )
    )
    end = alt.Chart(records(high=[float(ends[-1])], label=[words["total"].format(total=f"{ends[-1]:+.4f}")]))
    rule = end.mark_rule(color=HUES["weights"], strokeDash=[5, 4]).encode(y=alt.Y("high:Q"))
    text = end.mark_text(align="left", dx=4, dy=-8, color=HUES["weights"], fontSize=12).encode(
        y=alt.Y("high:Q"), x=alt.value(0), text=alt.Text("label:N")
    )
    zero = alt.Chart(records(high=[0.0])).mark_rule(color=REST).encode(y=alt.Y("high:Q"))
    return alt.layer(zero, bars, rule, text).properties(width="container", height=360)
