"""The vocabulary as points, flat or in space: searched words, their neighbours and the sentence's tokens are named.

Arrays come from transformer_core.analysis.words: vocabulary_map and two_embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import altair as alt
import numpy as np
import plotly.graph_objects as go

from pages.figures.charts import HUES, PALETTE, Chart, records, tooltips

NEGATIVE, NEUTRAL, POSITIVE = HUES["key"], "#a39c92", HUES["query"]
MARKS = ("searched", "neighbour", "sentence")
MARK_HUES = {"searched": PALETTE[4], "neighbour": PALETTE[4], "sentence": PALETTE[5]}
SHAPES = ("circle", "triangle-up", "triangle-down", "square", "diamond")
WIDTH_OF_LETTER, HEIGHT_OF_NAME = 0.0075, 0.034  # shares of the picture
MOST_RINGS = 200
SHARE_IN_SCALE = 97  # percentile of sizes where the colours end


@dataclass(frozen=True, eq=False)
class Points:
    """The points of a map, with what colours, names and marks them.

    Shapes:
        xy: (point, 2 or 3); values: (point,)

    Args:
        labels: of each point.
        values: what signed colours show; None where kinds do.
        kinds: what each point is, in words; a hue and a shape each.
        kind_names: all kinds, in the order of their hues.
        legend: title of the colours.
        details: further numbers or words for the tooltip, by title.
        marks: by point: "searched", "neighbour" (of a searched one) or "sentence".
        named: further points to name, such as the extremes.
    """

    xy: np.ndarray
    labels: Sequence[str]
    values: np.ndarray | None = None
    kinds: Sequence[str] | None = None
    kind_names: tuple[str, ...] = ()
    legend: str = ""
    details: Mapping[str, Sequence[object] | np.ndarray] = field(default_factory=dict)
    marks: Mapping[int, str] = field(default_factory=dict)
    named: Sequence[int] = ()


def extremes(values: np.ndarray, count: int = 160) -> list[int]:
    """Return the places of the values furthest from 0, the furthest first."""
    return np.argsort(-np.abs(values), kind="stable")[:count].tolist()


def readable(xy: np.ndarray, labels: Sequence[str], places: Sequence[int], taken: list[tuple[float, ...]]) -> list[int]:
    """Return the places, in their order, whose names do not overlap the name of an earlier one.

    Shapes:
        xy: (point, 2)

    Args:
        taken: boxes of names already drawn, as left, right, low, high; the chosen names' boxes are appended.
    """
    span = np.ptp(xy, axis=0)
    kept = []
    for place in places:
        wide = span[0] * WIDTH_OF_LETTER * sum(2 if ord(letter) >= 0x2E80 else 1 for letter in labels[place]) / 2
        high = span[1] * HEIGHT_OF_NAME / 2
        x, y = xy[place]
        box = (x - wide, x + wide, y - high, y + high)
        if not any(box[0] < b[1] and b[0] < box[1] and box[2] < b[3] and b[2] < box[3] for b in taken):
            taken.append(box)
            kept.append(place)
    return kept


def vocabulary_scatter(points: Points, words: Mapping[str, str], *, axes: Sequence[str], height: int = 560) -> Chart:
    """Draw a scatter plot that can be zoomed, moved and pointed at.

    Args:
        words: of the page.
        axes: titles of both axes.
    """
    marks = [words[f"mark_{points.marks[place]}"] if place in points.marks else "" for place in range(len(points.xy))]
    columns: dict[str, Sequence[object] | np.ndarray] = {
        "x": points.xy[:, 0],
        "y": points.xy[:, 1],
        "token": points.labels,
        "mark": marks,
        **{f"d{number}": values for number, values in enumerate(points.details.values())},
    }
    if points.values is not None:
        columns |= {
            "value": points.values,
            "strength": np.abs(points.values),
            "side": _sides(points.values, words),
        }
    if points.kinds is not None:
        columns["kind"] = points.kinds
    tooltip = [alt.Tooltip("token:N", title=words["axis_token"])]
    tooltip += [
        alt.Tooltip(f"d{number}:{_type(values)}", title=title, format=_format(values))
        for number, (title, values) in enumerate(points.details.items())
    ]
    x = alt.X("x:Q", title=axes[0], scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6))
    y = alt.Y("y:Q", title=axes[1], scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6))
    base = alt.Chart(records(**columns)).encode(x=x, y=y, tooltip=tooltip)
    move = alt.selection_interval(bind="scales")
    dots = base.mark_point(filled=True, size=26, opacity=0.75, stroke=None).encode(**_colours(points, words))
    layers = [dots.add_params(move), *_named(points, words, x, y)]
    return alt.layer(*layers).properties(width="container", height=height)


def _sides(values: np.ndarray, words: Mapping[str, str]) -> list[str]:
    return [words["side_up"] if value >= 0 else words["side_down"] for value in values.tolist()]


def _type(values: Sequence[object] | np.ndarray) -> str:
    return "Q" if isinstance(values, np.ndarray) and values.dtype.kind in "fi" else "N"


def _format(values: Sequence[object] | np.ndarray) -> Any:
    return ".3f" if isinstance(values, np.ndarray) and values.dtype.kind == "f" else alt.Undefined


def _colours(points: Points, words: Mapping[str, str]) -> dict[str, Any]:
    if points.values is not None:
        bound = colour_bound(points.values)
        scale = alt.Scale(domain=[-bound, 0, bound], range=[NEGATIVE, NEUTRAL, POSITIVE], clamp=True, interpolate="rgb")
        sides = alt.Scale(domain=[words["side_up"], words["side_down"]], range=list(SHAPES[1:3]))
        bar = alt.Legend(
            orient="top",
            title=points.legend,
            titleLimit=600,
            gradientLength=260,
            values=[-bound, 0, bound],
            format=".2f",
        )
        sizes = alt.Scale(domain=[0, bound], range=[14, 110], clamp=True)
        return {
            "size": alt.Size("strength:Q", scale=sizes, legend=None),
            "color": alt.Color("value:Q", scale=scale, legend=bar),
            "shape": alt.Shape(
                "side:N", scale=sides, legend=alt.Legend(orient="top", title=None, symbolFillColor=NEUTRAL)
            ),
        }
    if points.kinds is not None:
        names = list(points.kind_names)
        shapes = list(SHAPES[: len(names)])
        legend = alt.Legend(orient="top", title=points.legend, titleLimit=600)
        hues = [NEUTRAL, POSITIVE, NEGATIVE, PALETTE[2], PALETTE[3]][: len(names)]
        return {
            "color": alt.Color("kind:N", scale=alt.Scale(domain=names, range=hues), legend=legend),
            "shape": alt.Shape("kind:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
        }
    return {"color": alt.value(HUES["residual"])}


def colour_bound(values: np.ndarray) -> float:
    """Return where signed colours end: a percentile, so that a few extremes do not make all others pale."""
    return float(np.percentile(np.abs(values), SHARE_IN_SCALE)) or 1.0


def _named(points: Points, words: Mapping[str, str], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return rings around the marked points, and names for these and for the extremes."""
    layers, taken = [], []
    plain = [place for place in points.named if place not in points.marks]
    for mark in ("searched", "sentence", "neighbour", ""):
        places = plain if not mark else [place for place, name in points.marks.items() if name == mark][:MOST_RINGS]
        if not places:
            continue
        shown = set(readable(points.xy, points.labels, places, taken))
        hue = MARK_HUES.get(mark, HUES["residual"])
        data = records(
            x=points.xy[places, 0],
            y=points.xy[places, 1],
            token=[points.labels[place] for place in places],
            name=[points.labels[place] if place in shown else "" for place in places],
            mark=[words[f"mark_{mark}"] if mark else ""] * len(places),
        )
        chart = alt.Chart(data).encode(x=x, y=y)
        if mark:
            shape = "diamond" if mark == "sentence" else "circle"
            size = 170 if mark == "searched" else 90
            ring = chart.mark_point(shape=shape, size=size, filled=False, strokeWidth=2, color=hue)
            layers.append(ring.encode(tooltip=tooltips("token:N", "mark:N")))
        weight, style = ("bold" if mark in ("searched", "sentence") else "normal"), ("" if mark else "italic")
        font_size = 15 if mark == "searched" else 12
        text = chart.mark_text(dy=-10, fontSize=font_size, fontWeight=weight, fontStyle=style or "normal", color=hue)
        layers.append(text.encode(text=alt.Text("name:N")))
    return layers


def vocabulary_space(points: Points, words: Mapping[str, str], *, axes: Sequence[str]) -> go.Figure:
    """Draw points in three dimensions.

    Args:
        axes: titles of the three axes.
    """
    figure = go.Figure()
    hover = [escape(label) for label in points.labels]
    marker: dict[str, object] = {"size": 3, "opacity": 0.75, "color": HUES["residual"]}
    if points.values is not None:
        bound = colour_bound(points.values)
        scale = [[0.0, NEGATIVE], [0.5, NEUTRAL], [1.0, POSITIVE]]
        title = {"text": points.legend, "side": "right"}
        bar = {"title": title, "len": 0.6, "thickness": 12, "tickformat": ".1f"}
        marker |= {"color": points.values.tolist(), "colorscale": scale, "cmin": -bound, "cmax": bound, "colorbar": bar}
    figure.add_trace(_dots(points.xy, hover, words["all_tokens"], marker=marker, mode="markers"))
    for mark in MARKS:
        places = [place for place, name in points.marks.items() if name == mark]
        if places:
            style = {"size": 6, "color": MARK_HUES[mark], "symbol": "diamond" if mark == "sentence" else "circle"}
            names = [hover[place] for place in places]
            dots = _dots(points.xy[places], names, words[f"mark_{mark}"], marker=style, mode="markers+text")
            dots.update(text=names, textposition="top center", textfont={"color": MARK_HUES[mark], "size": 13})
            figure.add_trace(dots)
    scene = {f"{name}axis": {"title": {"text": title}} for name, title in zip("xyz", axes, strict=True)}
    figure.update_layout(
        scene=scene | {"aspectmode": "cube", "camera": {"eye": {"x": 1.6, "y": -1.6, "z": 0.9}}},
        margin={"l": 0, "r": 0, "t": 30, "b": 0},
        height=620,
        legend={"orientation": "h", "y": -0.02},
        uirevision="space",
    )
    return figure


def _dots(xyz: np.ndarray, hover: list[str], name: str, **style: object) -> go.Scatter3d:
    x, y, z = (column.tolist() for column in xyz.T)
    return go.Scatter3d(x=x, y=y, z=z, hovertext=hover, hoverinfo="text", name=name, **style)


def to_html(figure: go.Figure) -> str:
    """Return one HTML page with the figure and plotly's script in it, which needs no network."""
    return figure.to_html(include_plotlyjs=True, full_html=True)


def rows_of(points: Points) -> list[dict[str, object]]:
    """Return one row for each point: its token and its three coordinates."""
    rows = zip(points.labels, points.xy.tolist(), strict=True)
    return [{"token": label, "x": x, "y": y, "z": z} for label, (x, y, z) in rows]
