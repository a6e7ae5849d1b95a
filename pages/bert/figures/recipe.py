"""The masking recipe as charts: the shares over many copies of a sentence, and the head's answers by kind of token.

Arrays come from transformer_core.analysis.bert.masking_recipe.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.bert.figures.guesses import QUARTERS, numbered, token_axis
from pages.figures.charts import HUES, Chart, hued, records, tooltips
from pages.figures.likeliest import REST

Words = Mapping[str, str]
HUES_OF_FATES = {
    "untouched": REST,
    "masked": HUES["weights"],
    "exchanged": HUES["key"],
    "kept": HUES["value"],
}


def shares_chart(names: Sequence[str], shares: np.ndarray, expected: Sequence[float], words: Words) -> Chart:
    """Draw the share of the chosen tokens of each kind, and as a tick the share that the recipe asks for.

    Shapes:
        shares, expected: (fate,), of the chosen tokens

    Args:
        names: of the fates, without "untouched".
        words: axis_share, expected, and fate_NAME of each.
    """
    shown = [words[f"fate_{name}"] for name in names]
    further = np.maximum(shares, expected).astype(float)  # the number stands clear of the tick
    data = records(fate=shown, share=shares.astype(float), expected=expected, further=further)
    hue = alt.Scale(domain=shown, range=[HUES_OF_FATES[name] for name in names])
    base = alt.Chart(data).encode(
        y=alt.Y("fate:N", sort=None, scale=alt.Scale(domain=shown), title=None, axis=alt.Axis(labelLimit=260)),
        tooltip=[
            alt.Tooltip("fate:N"),
            alt.Tooltip("share:Q", format=".2%", title=words["axis_share"]),
            alt.Tooltip("expected:Q", format=".0%", title=words["expected"]),
        ],
    )
    across = alt.X("share:Q", title=words["axis_share"], scale=alt.Scale(domain=[0, 1]), axis=QUARTERS)
    bars = base.mark_bar(height=20, cornerRadiusEnd=3).encode(
        x=across, color=alt.Color("fate:N", scale=hue, legend=None)
    )
    ticks = base.mark_tick(color=HUES["positions"], thickness=3, size=30).encode(x=alt.X("expected:Q"))
    text = base.mark_text(align="left", dx=8, fontSize=12).encode(
        x=alt.X("further:Q"), text=alt.Text("share:Q", format=".1%")
    )
    return alt.layer(bars, ticks, text).properties(width="container", height=36 * len(names) + 60)


def ways_chart(
    ways: Sequence[str], labels: Sequence[str], places: Sequence[int], probabilities: np.ndarray, words: Words
) -> Chart:
    """Draw the probability of each true word when its place is masked, exchanged or kept, side by side.

    Shapes:
        probabilities: (way, token)

    Args:
        words: axis_token, axis_probability, and fate_NAME of each way.
    """
    names, shown = numbered(labels, places), [words[f"fate_{way}"] for way in ways]
    hues = [HUES_OF_FATES[way] for way in ways]
    data = records(
        token=names * len(ways),
        way=np.repeat(shown, len(names)).tolist(),
        chance=probabilities.astype(float).ravel(),
    )
    return (
        alt.Chart(data)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=token_axis(names, words["axis_token"]),
            xOffset=alt.XOffset("way:N", sort=shown),
            y=alt.Y(
                "chance:Q", title=words["axis_probability"], scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%")
            ),
            color=hued("way", shown, hues, labelLimit=300),
            tooltip=tooltips(
                "token:N", "way:N", alt.Tooltip("chance:Q", format=".2%", title=words["axis_probability"])
            ),
        )
        .properties(width="container", height=340)
    )
