"""Figures of the encoder page: curves over depths, bars of sums and tokens, the reliability diagram, and matrices.

Arrays come from transformer_core.analysis.encoder.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, dashes_of, hued, records, tooltips
from pages.figures.forms import Filled, form, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
HEIGHT = 330
MOST_NAMED = 48
COUNTS_SHARE = 5  # the longest bar of counts takes one part in five of the height
SIGNED = Scale("signed", -1.0, 1.0)
TOKENS = "encoder_tokens"  # matrices with this link mark the same cell

Words = Mapping[str, str]


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
        layers.append(base.mark_errorbar(opacity=0.5).encode(y=alt.Y("low:Q", title=up), y2=alt.Y2("high:Q")))
    if level is not None:
        rule = alt.Chart(records(level=[level])).mark_rule(color=HUES["residual"], strokeDash=[4, 4])
        layers.append(rule.encode(y=alt.Y("level:Q", scale=scale)))
    lines = base.encode(
        y=height_of,
        tooltip=tooltips("series:N", "stage:N", alt.Tooltip("value:Q", format=format, title=up)),
    )
    layers.append(
        lines.mark_line(strokeWidth=2.5).encode(
            strokeDash=alt.StrokeDash("series:N", scale=dashes_of(names), legend=None)
        )
    )
    shapes = alt.Scale(domain=list(names), range=list(SHAPES[: len(names)]))
    points = lines.mark_point(filled=True, size=70, opacity=1)
    layers.append(points.encode(shape=alt.Shape("series:N", scale=shapes, legend=legend)))
    return alt.layer(*layers)


def stage_lines(
    stages: Sequence[str],
    series: Mapping[str, np.ndarray],
    words: Words,
    *,
    domain: tuple[float, float] | None = None,
    level: float | None = None,
    spread: Mapping[str, np.ndarray] | None = None,
    format: str = ".2f",
    height: int = HEIGHT,
) -> Filled:
    """Draw a line for each series over named stages.

    Shapes:
        every series, and its spread: (stage,)

    Args:
        words: stage and value, the titles of the axes.
        domain: the range of the value axis; the data's by default.
        level: the value at which a horizontal rule is drawn.
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


def token_bars(values: np.ndarray, labels: tuple[str, ...], words: Words) -> Chart:
    """Draw one measure at each token; a token without a value has no bar.

    Shapes:
        values: (pos,)

    Args:
        words: token, value, above, below (the last two are in the legend only where a value is below 0).
    """
    names = [f"{label} {index}" for index, label in enumerate(labels)]
    does = [words["below"] if value < 0 else words["above"] for value in np.nan_to_num(values).tolist()]
    signed = bool((np.nan_to_num(values) < 0).any())
    overlap = "greedy" if len(labels) > MOST_NAMED else False
    axis = alt.Axis(labelAngle=-50, labelLimit=80, labelOverlap=overlap, ticks=False, titlePadding=2)
    kinds, hues = (words["above"], words["below"]), (PALETTE[5], HUES["residual"])
    hue = hued("does", kinds, hues, direction="horizontal", labelLimit=320)
    bars = alt.Chart(records(token=names, value=values, does=does)).mark_bar()
    bars = bars.encode(
        x=alt.X("token:N", scale=alt.Scale(domain=names), title=words["token"], axis=axis),
        y=alt.Y("value:Q", title=words["value"], axis=alt.Axis(minExtent=46)),
        color=hue if signed else alt.value(HUES["weights"]),
        tooltip=[alt.Tooltip("token:N"), alt.Tooltip("value:Q", format="+.4f", title=words["value"])],
    )
    zero = alt.Chart(records(zero=[0])).mark_rule(color=HUES["residual"]).encode(y=alt.Y("zero:Q"))
    return alt.layer(bars, zero).properties(width="container", height=HEIGHT)


def _bin_tooltips(words: Words) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("sure:Q", format=".1%", title=words["confidence"]),
        alt.Tooltip("right:Q", format=".1%", title=words["accuracy"]),
        alt.Tooltip("low:Q", format=".1%"),
        alt.Tooltip("high:Q", format=".1%"),
        alt.Tooltip("count:Q", title=words["count"]),
    ]


def _counts(base: alt.Chart, start: alt.X, middle: alt.X, most: int, words: Words) -> alt.LayerChart | alt.FacetChart:
    """Draw the counts as low bars with their own axis at the right."""
    axis = alt.Axis(orient="right", values=[0, most], grid=False)
    up = alt.Y("count:Q", title=words["count"], scale=alt.Scale(domain=[0, COUNTS_SHARE * most], nice=False), axis=axis)
    bars = base.mark_bar(color=HUES["residual"], opacity=0.45, stroke="white", strokeWidth=1).encode(
        x=start, x2=alt.X2("end:Q"), y=up, y2=alt.Y2Datum(0), tooltip=[alt.Tooltip("count:Q", title=words["count"])]
    )
    numbers = base.mark_text(dy=-7).encode(x=middle, y=up, text=alt.Text("count:Q"))
    return alt.layer(bars, numbers)


def reliability(found: Mapping[str, np.ndarray], here: float, words: Words) -> Filled:
    """Draw the share of right verdicts in each bin of confidence, over bars of the number of verdicts in it.

    Args:
        found: edges (bin + 1,), counts, confidence, accuracy, low and high, (bin,).
        here: the confidence on the typed sentence.
        words: confidence, accuracy, count, here.
    """
    edges = np.asarray(found["edges"], dtype=float)
    bins = records(
        start=edges[:-1],
        end=edges[1:],
        middle=(edges[:-1] + edges[1:]) / 2,
        count=found["counts"],
        sure=found["confidence"],
        right=found["accuracy"],
        low=found["low"],
        high=found["high"],
    )
    own = records(here=[here], word=[words["here"]], left=[bool(here <= edges[[0, -1]].mean())])
    said = {name: words[name] for name in ("confidence", "accuracy", "count")}
    most = int(np.max(found["counts"]))
    return Filled(_reliability(tuple(edges.tolist()), most, said), {"bins": bins, "own": own}, height=HEIGHT + 40)


@form
def _reliability(edges: tuple[float, ...], most: int, words: Words) -> Chart:
    base, across = named("bins"), alt.Scale(domain=[edges[0], 1.0], nice=False)
    axis = alt.Axis(format=".0%", values=list(edges), labelFlush=False)

    def at(name: str) -> alt.X:
        return alt.X(f"{name}:Q", title=words["confidence"], scale=across, axis=axis)

    up = alt.Y("right:Q", title=words["accuracy"], scale=alt.Scale(domain=[0, 1]))
    up = up.axis(format=".0%", minExtent=44, grid=True)
    diagonal = alt.Chart(records(sure=[edges[0], 1.0], right=[edges[0], 1.0])).mark_line(
        color=HUES["residual"], strokeDash=[5, 4]
    )
    own = named("own")
    look: dict[str, Any] = {"baseline": "top", "color": HUES["key"]}
    at_left = own.transform_filter("datum.left").mark_text(align="left", dx=5, **look)
    at_right = own.transform_filter("!datum.left").mark_text(align="right", dx=-5, **look)
    verdicts = alt.layer(
        diagonal.encode(x=at("sure"), y=up),
        own.mark_rule(color=HUES["key"], strokeDash=[2, 2]).encode(x=at("here")),
        base.mark_rule(color=HUES["query"], strokeWidth=2).encode(x=at("sure"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(filled=True, size=110, color=HUES["query"], opacity=1).encode(
            x=at("sure"), y=up, tooltip=_bin_tooltips(words)
        ),
        *(name.encode(x=at("here"), y=alt.value(4), text=alt.Text("word:N")) for name in (at_left, at_right)),
    )
    chart = alt.layer(_counts(base, at("start"), at("middle"), most, words), verdicts)
    return chart.resolve_scale(y="independent")


def _exact_figure(
    name: str,
    panels: Sequence[Panel],
    rows: Axis,
    cols: Axis,
    words: Words,
    **options: Any,
) -> MatrixFigure:
    """Return the figure of these panels; `words` has row_top, col_top and masked: these are no attention weights."""
    return MatrixFigure(
        tuple(panels),
        rows,
        cols,
        {name: words[name] for name in ("row_top", "col_top", "masked")},
        detail="exact",
        filename=f"encoder_{name}",
        **options,
    )


def moves_figure(moves: np.ndarray, angles: np.ndarray, labels: tuple[str, ...], words: Words) -> MatrixFigure:
    """Draw by how much each layer turns and lengthens each token's vector.

    Shapes:
        moves, angles: (layer, pos)

    Args:
        labels: one a token.
        words: layer, token, moves, angles.
    """
    panels = [Panel(name, words[name], x, Scale.of("count", x)) for name, x in (("angles", angles), ("moves", moves))]
    rows, cols = Axis.counted(words["layer"], len(moves)), Axis(words["token"], labels)
    return _exact_figure("moves", panels, rows, cols, words, role="residual", link=TOKENS)


def _rows_over_greatest(values: np.ndarray) -> np.ndarray:
    """Return each row divided by its greatest size; a row of zeros stays as it is."""
    greatest = np.nan_to_num(np.abs(values)).max(-1, keepdims=True)
    return values / np.where(greatest > 0, greatest, 1.0)


def measures_figure(values: np.ndarray, names: Sequence[str], labels: tuple[str, ...], words: Words) -> MatrixFigure:
    """Draw the value of each measure at each token, every row divided by its greatest size.

    Shapes:
        values: (measure, pos)

    Args:
        names: one a measure; labels: one a token.
        words: measure, token, measures, share_of_row.
    """
    panel = Panel("measures", words["measures"], _rows_over_greatest(values), SIGNED)
    rows, cols, quantity = Axis(words["measure"], tuple(names)), Axis(words["token"], labels), words["share_of_row"]
    return _exact_figure("measures", [panel], rows, cols, words, link=TOKENS, quantity=quantity)


def agreement_figure(panels: Mapping[str, np.ndarray], names: Sequence[str], words: Words) -> MatrixFigure:
    """Draw rank correlations or shares of every pair of measures.

    Shapes:
        every panel: (measure, measure)

    Args:
        panels: by "rho" and "same_first".
        names: one a measure.
        words: measure, other_measure, and a title for each panel.
    """
    shown = [
        Panel(name, words[name], values, SIGNED if name == "rho" else Scale.of("probability"))
        for name, values in panels.items()
    ]
    rows, cols = (Axis(words[axis], tuple(names)) for axis in ("measure", "other_measure"))
    return _exact_figure("agreement", shown, rows, cols, words, link="encoder_measures")


def maps_figure(maps: np.ndarray, stages: Sequence[str], labels: tuple[str, ...], words: Words) -> MatrixFigure:
    """Draw one measure at each stage of shuffling, every row divided by its greatest size.

    Shapes:
        maps: (stage, pos)

    Args:
        words: stage, token, share_of_row.
    """
    panel = Panel("maps", "", _rows_over_greatest(maps), SIGNED)
    rows, cols, quantity = Axis(words["stage"], tuple(stages)), Axis(words["token"], labels), words["share_of_row"]
    return _exact_figure("maps", [panel], rows, cols, words, link=TOKENS, quantity=quantity)


def spread_figure(spread: np.ndarray, depths: Sequence[str], labels: tuple[str, ...], words: Words) -> MatrixFigure:
    """Draw the distance between the vectors of two sentences at each depth and pair of tokens.

    Shapes:
        spread: (depth, pair)

    Args:
        labels: one a pair.
        words: depth, token, spread.
    """
    panel = Panel("spread", words["spread"], spread, Scale.of("count", spread))
    rows, cols = Axis(words["depth"], tuple(depths)), Axis(words["token"], labels)
    return _exact_figure("spread", [panel], rows, cols, words, role="residual")
