"""All heads of a model by two measures over many texts; a click on one reports its place.

Arrays come from transformer_core.analysis.corpus.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.forms import Filled, form, named
from pages.figures.token_strip import PLACE


def corpus_scatter(
    values: np.ndarray,
    bounds: np.ndarray,
    names: Sequence[str],
    layers: Sequence[str],
    words: Mapping[str, str],
    *,
    chosen: int,
    beside: np.ndarray,
) -> Filled:
    """Draw each head by two measures; a click reports its place. Heads without one of the two are left out.

    Shapes:
        values: (2, head), across and up; bounds: (2, 2, head), of each measure its lower and upper bound
        beside: (2,), both measures of a head that looks at everything it may see alike; nan where there is none

    Args:
        layers: of each head, by which it is coloured.
        words: across, up, head, layer, uniform.
        chosen: the head that is ringed, and whose bounds are drawn.
    """
    there = np.flatnonzero(np.isfinite(values).all(0)).tolist()
    across, up = values
    rows = records(
        place=there,
        across=across[there],
        up=up[there],
        head=[names[place] for place in there],
        layer=[layers[place] for place in there],
        chosen=[place == chosen for place in there],
    )
    own = values[:, chosen]  # (2,)
    (low_x, high_x), (low_y, high_y) = np.where(np.isfinite(bounds[..., chosen]), bounds[..., chosen], own[:, None])
    at = {"across": [own[0]], "up": [own[1]]}
    spread = records(**at, x=[low_x], x2=[high_x], y=[low_y], y2=[high_y])
    alike = records(across=beside[:1], up=beside[1:], head=[words["uniform"]])
    data = {
        "heads": rows,
        "spread": spread if chosen in there else {"values": []},
        "alike": alike if np.isfinite(beside).all() else {"values": []},
    }
    return Filled(_corpus(words, tuple(dict.fromkeys(layers))), data, height=440)


@form
def _corpus(words: Mapping[str, str], layers: tuple[str, ...]) -> Chart:
    scale = alt.Scale(zero=False, nice=True, padding=14)
    x = alt.X("across:Q", title=words["across"], scale=scale, axis=alt.Axis(tickCount=7))
    y = alt.Y("up:Q", title=words["up"], scale=scale, axis=alt.Axis(tickCount=7, minExtent=44))
    legend = alt.Legend(orient="top", title=words["layer"], columns=8, symbolLimit=0)
    hue = alt.Color("layer:N", scale=alt.Scale(domain=list(layers), scheme="viridis"), legend=legend)
    about = [
        alt.Tooltip("head:N", title=words["head"]),
        alt.Tooltip("across:Q", title=words["across"], format=".4f"),
        alt.Tooltip("up:Q", title=words["up"], format=".4f"),
    ]
    pick = alt.selection_point(name=PLACE, fields=[PLACE], on="click", clear=False)
    dots = named("heads").mark_point(filled=True, size=110, opacity=0.85, cursor="pointer")
    ring = named("heads").transform_filter("datum.chosen").mark_point(size=330, strokeWidth=3, color=HUES["positions"])
    rule = named("spread").mark_rule(color=HUES["positions"], strokeWidth=2)
    cross = named("alike").mark_point(shape="cross", size=120, color=HUES["residual"], filled=True, opacity=0.9)
    return alt.layer(
        cross.encode(x=x, y=y, tooltip=about),
        rule.encode(x=alt.X("x:Q", scale=scale), x2=alt.X2("x2:Q"), y=y),
        rule.encode(x=x, y=alt.Y("y:Q", scale=scale), y2=alt.Y2("y2:Q")),
        dots.encode(x=x, y=y, color=hue, tooltip=about).add_params(pick),
        ring.encode(x=x, y=y),
    )
