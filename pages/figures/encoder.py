"""The encoder page's curves over stages: verdicts, probes and margins by depth, and maps as the weights are shuffled.

Arrays come from transformer_core.analysis.encoder. Read next: encoder_bars.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, PALETTE, Chart, records
from pages.figures.forms import Filled, form, named

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
HEIGHT = 330


def stage_lines(
    stages: Sequence[str],
    series: Mapping[str, np.ndarray],
    words: Mapping[str, str],
    *,
    domain: tuple[float, float] | None = None,
    level: float | None = None,
    spread: Mapping[str, np.ndarray] | None = None,
    format: str = ".2f",
    height: int = HEIGHT,
) -> Filled:
    """Draw one line a series over named stages.

    Shapes:
        every series, and its spread: (stage,)

    Args:
        words: stage and value, the titles of the axes.
        domain: the ends of the values' axis, else those of the data.
        level: where a horizontal rule stands.
        spread: half the height of the band around a series.
        format: of the numbers, in d3's notation.
    """
    names, spread = tuple(series), spread or {}
    half = [spread.get(name, np.zeros(len(stages))) for name in names]
    values = np.concatenate([np.asarray(series[name], dtype=float) for name in names])
    reach, ends = np.concatenate(half), domain or (-np.inf, np.inf)
    rows = records(
        stage=list(stages) * len(names),
        value=values,
        low=np.clip(values - reach, *ends),
        high=np.clip(values + reach, *ends),
        series=np.repeat(names, len(stages)).tolist(),
    )
    axes = (words["stage"], words["value"])
    lines = _lines(tuple(stages), names, axes, domain=domain, level=level, spread=bool(spread), format=format)
    return Filled(lines, {"stages": rows}, height=height)


@form
def _lines(
    stages: tuple[str, ...],
    names: tuple[str, ...],
    axes: tuple[str, str],
    *,
    domain: tuple[float, float] | None,
    level: float | None,
    spread: bool,
    format: str,
) -> Chart:
    across, up = axes
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=False)
    columns = 2 if len(names) <= 2 else 3
    legend = alt.Legend(title=None, orient="top", labelLimit=420, columns=columns, symbolDash=[1, 0], symbolOpacity=1)
    look = alt.Scale(domain=list(names), range=list(PALETTE[: len(names)]))
    base = named("stages").encode(
        x=alt.X("stage:N", scale=alt.Scale(domain=list(stages)), title=across, axis=alt.Axis(labelAngle=0)),
        color=alt.Color("series:N", scale=look, legend=legend),
    )
    height_of = alt.Y("value:Q", title=up, scale=scale, axis=alt.Axis(minExtent=44))
    layers: list[alt.Chart] = []
    if spread:
        layers.append(base.mark_errorbar(opacity=0.5).encode(y=alt.Y("low:Q", title=up), y2="high:Q"))
    if level is not None:
        rule = alt.Chart(records(level=[level])).mark_rule(color=HUES["residual"], strokeDash=[4, 4])
        layers.append(rule.encode(y=alt.Y("level:Q", scale=scale)))
    dashes = [list(DASHES[place % len(DASHES)]) for place in range(len(names))]
    lines = base.encode(
        y=height_of,
        tooltip=["series:N", "stage:N", alt.Tooltip("value:Q", format=format, title=up)],
    )
    layers.append(
        lines.mark_line(strokeWidth=2.5).encode(
            strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=list(names), range=dashes), legend=None)
        )
    )
    shapes = alt.Scale(domain=list(names), range=list(SHAPES[: len(names)]))
    points = lines.mark_point(filled=True, size=70, opacity=1)
    layers.append(points.encode(shape=alt.Shape("series:N", scale=shapes, legend=legend)))
    return alt.layer(*layers)
