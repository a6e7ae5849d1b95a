"""Figures of a mixture of experts: the router's probabilities by token, and a number for each expert as a bar.

Arrays come from transformer_core.analysis.feed_forward.mixture.
"""

from collections.abc import Collection, Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, hued, records, tooltips
from pages.figures.curves import GREY
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

HEIGHT = 240
Words = Mapping[str, str]


def routing_figure(
    probabilities: np.ndarray,
    weights: np.ndarray,
    labels: tuple[str, ...],
    words: Words,
    *,
    cell: tuple[int, int],
    title: str,
) -> MatrixFigure:
    """Draw each expert's probability at each token, and beside it the weights of the chosen ones alone.

    Shapes:
        probabilities, weights: (pos, expert); a weight of 0 is drawn as hidden

    Args:
        labels: one a token.
        cell: the chosen (token, expert).
        title: printed above.
    """
    chosen = np.where(weights == 0, np.nan, weights)
    panels = {"router_probability": probabilities, "expert_weight": chosen}
    return MatrixFigure(
        tuple(Panel(name, words[name], values, Scale.of("probability")) for name, values in panels.items()),
        Axis(words["token"], labels),
        Axis.counted(words["expert"], probabilities.shape[1]),
        {"masked": words["not_chosen"]},
        role="residual",
        detail="exact",
        cell=cell,
        cell_panel=1,
        link="experts",
        title=title,
        filename="feed_forward_routing",
    )


def expert_bars(
    values: np.ndarray,
    marked: Collection[int],
    words: Words,
    *,
    up: str,
    names: tuple[str, str],
    level: tuple[str, float] | None = None,
) -> Filled:
    """Draw a number for each expert, some of them marked, with a level to compare with.

    Shapes:
        values: (expert,)

    Args:
        up: what the numbers are.
        names: of the marked ones, and of the others.
        level: its name and its height.
    """
    which = [names[expert not in marked] for expert in range(len(values))]
    experts = records(expert=list(map(str, range(len(values)))), value=values, which=which, place=range(len(values)))
    said, height = level or ("", 0.0)
    return Filled(
        _bars(words["expert"], up, names, said),
        {"experts": experts} | ({"level": records(level=[height], word=[said])} if said else {}),
        height=HEIGHT,
    )


@form
def _bars(expert: str, up: str, names: tuple[str, str], level: str) -> Chart:
    across = alt.X("expert:N", title=expert, sort=in_order("place"), axis=alt.Axis(labelAngle=0, labelOverlap=True))
    bars = (
        named("experts")
        .mark_bar()
        .encode(
            x=across,
            y=alt.Y("value:Q", title=up, axis=alt.Axis(minExtent=46)),
            color=hued("which", names, (HUES["positions"], HUES["residual"]), labelLimit=320),
            tooltip=tooltips("expert:N", "which:N", alt.Tooltip("value:Q", title=up, format=".4~g")),
        )
    )
    if not level:
        return bars
    dashes = alt.Scale(domain=[level], range=[[5, 4]])
    legend = alt.Legend(title=None, orient="top", labelLimit=320)
    line = named("level").mark_rule(color=GREY, strokeWidth=1.5)
    return alt.layer(
        bars, line.encode(y=alt.Y("level:Q"), strokeDash=alt.StrokeDash("word:N", scale=dashes, legend=legend))
    )
