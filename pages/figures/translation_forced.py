"""A given target word by word: how likely each was, and what the model would rather have written.

Arrays come from transformer_core.analysis.translation.teacher_forcing. Read next: translation_toy.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.translation import clipped, shown_chance

MOST_UPRIGHT = 40
MOST_NUMBERED = 24


def forced_bars(
    words: Sequence[str],
    probabilities: np.ndarray,
    ranks: np.ndarray,
    favourites: Sequence[str],
    favourite_probabilities: np.ndarray,
    said: Mapping[str, str],
) -> Chart:
    """Draw each word's probability, with the model's own favourite above it where that is another word.

    Shapes:
        probabilities, ranks, favourite_probabilities: (step,)

    Args:
        said: word, probability, rank, favourite, first, other: titles, and words for the two kinds of bar; favourite
            is that of the line, too.
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
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(
            domain=[said["first"], said["other"], said["favourite"]],
            range=[HUES["query"], HUES["positions"], HUES["residual"]],
        ),
        legend=alt.Legend(orient="top", direction="horizontal", labelLimit=0),
    )
    bars = base.mark_bar(cornerRadiusEnd=3).encode(y=y, color=colour)
    numbers = base.mark_text(dy=-8, fontSize=11).encode(y=y, color=colour, text="number:N")
    ticks = base.mark_tick(thickness=3).encode(y=alt.Y("line:Q"), color=alt.datum(said["favourite"]))
    names_over = base.mark_text(dy=-9, fontSize=12, color=HUES["residual"]).encode(y=alt.Y("line:Q"), text="over:N")
    return alt.layer(bars, numbers, ticks, names_over).properties(width="container", height=300)
