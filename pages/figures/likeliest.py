"""The next token: bars of the likeliest, all others as one, before and under the rules of drawing.

Arrays come from transformer_core.analysis.gpt.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, hued, records, tooltips
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.token_strip import shortened

Words = Mapping[str, str]
CHANCE, REST, CUT = PALETTE[5], HUES["residual"], "#9a96a3"
BAR, ROOM = 25, 90


def distinct(labels: Sequence[str]) -> list[str]:
    """Return labels of which no two are alike, so that each has its own bar."""
    seen: dict[str, int] = {}
    named = []
    for label in map(shortened, labels):
        seen[label] = seen.get(label, 0) + 1
        named.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return named


def expected_bars(
    labels: Sequence[str],
    probabilities: np.ndarray,
    rest: float,
    words: Words,
    *,
    came: tuple[str, float, int] | None = None,
    inside: int | None = None,
) -> Filled:
    """Draw the likeliest tokens and, as one bar, all others.

    Shapes:
        probabilities: (top,)

    Args:
        rest: the probability of all others.
        words: token, probability, rest (with its number put in), expected, came.
        came: label, probability and rank of the token that the text has, where that is not among these.
        inside: its place among these, where it is.
    """
    names = distinct(labels)
    kinds = [words["came"] if place == inside else words["expected"] for place in range(len(names))]
    values = probabilities.astype(float).tolist()
    if came is not None:
        label, chance, rank = came
        names, kinds, values = [*names, f"{rank:,} · {shortened(label)}"], [*kinds, words["came"]], [*values, chance]
    names, kinds = [*names, words["rest"]], [*kinds, words["others"]]
    values.append(rest - (came[1] if came is not None else 0.0))
    high = max(values) * 1.16
    data = records(
        token=names,
        chance=[max(0.0, value) for value in values],
        kind=kinds,
        place=list(range(len(names))),
        axis_end=[high] * len(names),
    )
    bars = _expected(words, tuple(kind for kind in _hues(words) if kind in kinds))
    return Filled(bars, {"tokens": data}, height=ROOM + BAR * len(names))


def _hues(words: Words) -> dict[str, str]:
    return {words["expected"]: CHANCE, words["came"]: HUES["positions"], words["others"]: REST}


@form
def _expected(words: Words, kinds: tuple[str, ...]) -> Chart:
    base = named("tokens").encode(
        y=alt.Y("token:N", sort=in_order("place"), title=None, axis=_axis()),
        x=alt.X("chance:Q", title=words["probability"], scale=alt.Scale(nice=False), axis=_percent()),
        tooltip=[alt.Tooltip("token:N"), alt.Tooltip("chance:Q", format=".3%", title=words["probability"])],
    )
    hues = [_hues(words)[kind] for kind in kinds]
    colour = hued("kind", kinds, hues, direction="horizontal", labelLimit=300)
    bars = base.mark_bar(cornerRadiusEnd=3).encode(color=colour)
    numbers = base.mark_text(align="left", dx=4, fontSize=12).encode(text=alt.Text("chance:Q", format=".1%"))
    room = base.mark_rule(opacity=0, aria=False, tooltip=None).encode(x=alt.X("axis_end:Q", title=words["probability"]))
    return alt.layer(bars, numbers, room)


def _axis() -> alt.Axis:
    return alt.Axis(labelFont="monospace", labelFontSize=13, labelLimit=220, labelOverlap=False, ticks=False)


def _percent() -> alt.Axis:
    return alt.Axis(format="~%", tickCount=5)


def redrawn_bars(
    labels: Sequence[str],
    before: Sequence[float] | np.ndarray,
    after: Sequence[float] | np.ndarray,
    kept: Sequence[bool] | np.ndarray,
    rest: tuple[float, float],
    words: Words,
    *,
    chosen: int | None = None,
) -> Filled:
    """Draw the chance of each token as the model has it and under the rules, side by side; what was cut is grey.

    Shapes:
        before, after, kept: (top,)

    Args:
        rest: of all other tokens, before and after; they are cut where the second is exactly 0.
        words: probability, rest, before, after, cut.
        chosen: the token that was written, whose name has a mark.
    """
    names = distinct(labels)
    if chosen is not None:
        names[chosen] = f"▸ {names[chosen]}"
    names.append(words["rest"])
    own = [words["before"] if keeps else words["cut"] for keeps in [*kept, rest[1] > 0]]
    kinds = [*own, *[words["after"]] * len(names)]
    values = np.array([*before, rest[0], *after, rest[1]], dtype=float)
    sides = np.repeat(["1", "2"], len(names)).tolist()
    places, high = [*range(len(names))] * 2, float(values.max()) * 1.14
    data = records(
        token=[*names, *names], chance=values, kind=kinds, side=sides, place=places, axis_end=[high] * len(values)
    )
    said = {name: words[name] for name in ("before", "cut", "after", "probability")}
    return Filled(_redrawn(said), {"tokens": data}, height=ROOM + 34 * len(names))


@form
def _redrawn(words: Words) -> Chart:
    order = [words["before"], words["cut"], words["after"]]
    base = named("tokens").encode(
        y=alt.Y("token:N", sort=in_order("place"), title=None, axis=_axis()),
        yOffset=alt.YOffset("side:N", sort=["1", "2"]),
        x=alt.X("chance:Q", title=words["probability"], scale=alt.Scale(nice=False), axis=_percent()),
        tooltip=tooltips("token:N", "kind:N", alt.Tooltip("chance:Q", format=".4%", title=words["probability"])),
    )
    colour = hued("kind", order, ("#a6d5da", CUT, CHANCE), labelLimit=300)
    bars = base.mark_bar(cornerRadiusEnd=2).encode(color=colour)
    above_zero = base.transform_filter(alt.datum.chance > 0)
    numbers = above_zero.mark_text(align="left", dx=4, fontSize=11).encode(text=alt.Text("chance:Q", format=".1%"))
    room = base.mark_rule(opacity=0, aria=False, tooltip=None).encode(x=alt.X("axis_end:Q", title=words["probability"]))
    return alt.layer(bars, numbers, room)
