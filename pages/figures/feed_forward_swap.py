"""Another activation at inference: how far the verdict moves, exchanged in all layers and in each alone.

Arrays come from transformer_core.analysis.feed_forward.other_activation. Read next: norm.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.feed_forward import hues_of

Words = Mapping[str, str]


def swap_chart(names: Sequence[str], moves: np.ndarray, by_layer: np.ndarray, words: Words, *, used: str) -> Chart:
    """Draw the move of the verdict for every activation but the model's own.

    Args:
        names: of the activations.
        moves: (activation,), exchanged everywhere, in percentage points.
        by_layer: (layer, activation), exchanged in one layer alone.
        used: the model's own.
    """
    others = [place for place, name in enumerate(names) if name != used]
    places = [words["everywhere"], *(words["layer_name"].format(layer=layer) for layer in range(len(by_layer)))]
    every = np.vstack([moves, by_layer])[:, others]  # (place, activation)
    shown = [words[f"name_{names[other]}"] for other in others]
    data = records(
        where=np.repeat(places, len(others)), activation=np.tile(shown, len(places)), move=every.ravel().round(6)
    )
    hue, _ = hues_of([names[other] for other in others], words)
    bars = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            y=alt.Y("where:N", sort=places, title=None),
            yOffset=alt.YOffset("activation:N", sort=shown),
            x=alt.X("move:Q", title=words["axis_points"], scale=alt.Scale(padding=44)),
            color=alt.Color("activation:N", scale=hue, title=None, legend=alt.Legend(orient="top", labelLimit=300)),
            tooltip=["where:N", "activation:N", alt.Tooltip("move:Q", format="+.4f")],
        )
    )
    zero = alt.Chart(records(move=[0.0])).mark_rule(color=HUES["residual"]).encode(x="move:Q")
    numbers = (
        alt.Chart(data)
        .mark_text(
            align=alt.expr("datum.move < 0 ? 'right' : 'left'"),
            dx=alt.expr("datum.move < 0 ? -4 : 4"),
            color=HUES["residual"],
        )
        .encode(
            y=alt.Y("where:N", sort=places),
            yOffset=alt.YOffset("activation:N", sort=shown),
            x="move:Q",
            text=alt.Text("move:Q", format="+.3f"),
        )
    )
    return alt.layer(bars, zero, numbers).properties(width="container", height=56 * len(places) + 80)
