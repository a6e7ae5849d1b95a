"""Bars of a score's sum: one a part, above and below 0, of which the strongest stand alone and the others together.

Arrays come from transformer_core.analysis.stream.score_sum and score_without.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, INK, PALETTE, Chart, hued, records
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.token_strip import PLACE

KINDS = {"embedding": PALETTE[6], "head": HUES["weights"], "feed_forward": PALETTE[5], "bias": PALETTE[7]}
MOST = 16  # bars that stand alone
BAR, AROUND = 24, 90  # pixels
OTHERS = -1

Words = Mapping[str, str]


def strongest(values: np.ndarray, most: int = MOST) -> list[int]:
    """Return the places of the values that are largest in size, in their own order."""
    order = np.argsort(-np.abs(values), kind="stable")[:most]
    return sorted(order.tolist())


def share_bars(
    names: Sequence[str],
    values: np.ndarray,
    kinds: Sequence[str],
    words: Words,
    *,
    chosen: int | None = None,
    about: Mapping[str, Sequence[object]] | None = None,
    by_size: bool = False,
) -> Filled:
    """Draw the strongest parts of a sum and, as one bar, all others; a click on a part reports its place.

    Shapes:
        values: (part,)

    Args:
        names: no two alike.
        kinds: of each part, one of KINDS.
        words: the kinds by their names, part, share (the title of the axis), others (with its number put in).
        chosen: the part that is ringed.
        about: what the tooltip tells of each part besides, by the name shown.
        by_size: the strongest first; else in the order given.
    """
    shown = strongest(values)
    if by_size:
        shown.sort(key=lambda place: -abs(values[place]))
    rest = [place for place in range(len(values)) if place not in set(shown)]
    labels, bars = [names[place] for place in shown], [float(values[place]) for place in shown]
    kind, places = [kinds[place] for place in shown], list(shown)
    if rest:
        labels, bars = [*labels, words["others"].format(count=len(rest))], [*bars, float(values[rest].sum())]
        kind, places = [*kind, "bias"], [*places, OTHERS]
    reach = 1.25 * max(1e-9, *map(abs, bars))
    columns = {
        f"about{index}": [of[place] if place >= 0 else "" for place in places]
        for index, of in enumerate((about or {}).values())
    }
    data = records(
        name=labels,
        value=bars,
        kind=[words[one] if place >= 0 else words["together"] for one, place in zip(kind, places, strict=True)],
        order=list(range(len(labels))),
        place=places,
        chosen=[chosen is not None and place == chosen for place in places],
        low=[-reach if min(bars) < 0 else 0.0] * len(labels),
        high=[reach if max(bars) > 0 else 0.0] * len(labels),
        **columns,
    )
    used = tuple(one for one in KINDS if one in {kinds[place] for place in shown})
    said = {name: words[name] for name in ("part", "share", "together", *KINDS)}
    return Filled(_bars(said, used, tuple(about or {}), bool(rest)), {"parts": data}, height=AROUND + BAR * len(labels))


@form
def _bars(words: Words, used: tuple[str, ...], about: tuple[str, ...], rest: bool) -> Chart:
    names, hues = [words[one] for one in used], [KINDS[one] for one in used]
    if rest:
        names, hues = [*names, words["together"]], [*hues, "#9a96a3"]
    legend = alt.Legend(orient="top", direction="horizontal", labelLimit=300) if len(names) > 1 else None
    tooltip = [
        alt.Tooltip("name:N", title=words["part"]),
        alt.Tooltip("value:Q", format="+.4f", title=words["share"]),
        *(alt.Tooltip(f"about{index}:N", title=name) for index, name in enumerate(about)),
    ]
    axis = alt.Axis(labelFontSize=13, labelLimit=240, labelOverlap=False, labelFlush=False, ticks=False)
    base = named("parts").encode(y=alt.Y("name:N", sort=in_order("order"), title=None, axis=axis), tooltip=tooltip)
    along = alt.X(
        "value:Q", title=words["share"], axis=alt.Axis(format="+~g", tickCount=5), scale=alt.Scale(nice=False)
    )
    pick = alt.selection_point(name=PLACE, fields=[PLACE], on="click", clear=False)
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=names, range=hues), legend=legend)
    bars = base.mark_bar(cornerRadiusEnd=3, cursor="pointer").encode(x=along, color=colour).add_params(pick)
    ring = base.transform_filter("datum.chosen").mark_bar(
        cornerRadiusEnd=3, filled=False, stroke=HUES["positions"], strokeWidth=3, aria=False
    )
    room = base.mark_rule(opacity=0, aria=False, tooltip=None)
    zero = alt.Chart(records(zero=[0])).mark_rule(color=HUES["residual"]).encode(x=alt.X("zero:Q"))
    return alt.layer(
        room.encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")), bars, ring.encode(x=along), zero, *_numbers(base)
    )


def _numbers(base: alt.Chart) -> list[alt.Chart]:
    """Write each bar's number at its end."""
    sides: tuple[tuple[str, dict[str, Any]], ...] = (
        ("datum.value >= 0", {"align": "left", "dx": 4}),
        ("datum.value < 0", {"align": "right", "dx": -4}),
    )
    return [
        base.transform_filter(side)
        .mark_text(fontSize=12, color=INK, **look)
        .encode(x=alt.X("value:Q"), text=alt.Text("value:Q", format="+.3f"))
        for side, look in sides
    ]


def share_and_effect(
    names: Sequence[str], shares: np.ndarray, effects: np.ndarray, kinds: Sequence[str], words: Words, *, apart: int
) -> Chart:
    """Draw each part as a point, its share across and its measured effect up, with the line where both are equal.

    Shapes:
        shares, effects: (part,)

    Args:
        kinds, words: as of share_bars, and effect, the title of the axis.
        apart: the part that is named.
    """
    ends = [float(min(shares.min(), effects.min(), 0)), float(max(shares.max(), effects.max(), 0))]
    data = records(name=list(names), share=shares, effect=effects, kind=[words[one] for one in kinds])
    used = [one for one in KINDS if one in set(kinds)]
    kinds, hues = [words[one] for one in used], [KINDS[one] for one in used]
    colour = hued("kind", kinds, hues, direction="horizontal", labelLimit=300)
    across = alt.X("share:Q", title=words["share"])
    up = alt.Y("effect:Q", title=words["effect"], axis=alt.Axis(minExtent=44))
    tooltip = [
        alt.Tooltip("name:N", title=words["part"]),
        alt.Tooltip("share:Q", format="+.4f", title=words["share"]),
        alt.Tooltip("effect:Q", format="+.4f", title=words["effect"]),
    ]
    points = alt.Chart(data).mark_point(filled=True, size=90, opacity=0.9)
    points = points.encode(x=across, y=up, color=colour, tooltip=tooltip)
    line = alt.Chart(records(share=ends, effect=ends)).mark_line(color=HUES["residual"], strokeDash=[5, 4])
    own = records(name=[names[apart]], share=[float(shares[apart])], effect=[float(effects[apart])])
    name = alt.Chart(own).mark_text(dy=-12, fontSize=12, color=INK)
    name = name.encode(x=across, y=up, text=alt.Text("name:N"))
    return alt.layer(line.encode(x=across, y=up), points, name).properties(width="container", height=340)
