"""The vocabulary in three dimensions, to be turned by hand, and as a page of its own without any network.

Read next: exports.py.
"""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from pages.figures.charts import HUES
from pages.figures.embeddings_map import MARK_HUES, MARKS, NEGATIVE, NEUTRAL, POSITIVE, Points, colour_bound


def vocabulary_space(points: Points, words: Mapping[str, str], *, axes: Sequence[str]) -> go.Figure:
    """Draw points in space.

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
    """Return one page that holds the figure and all that draws it."""
    return figure.to_html(include_plotlyjs=True, full_html=True)


def rows_of(points: Points) -> list[dict[str, object]]:
    """Return a row a point: its token and its three coordinates."""
    rows = zip(points.labels, points.xy.tolist(), strict=True)
    return [{"token": label, "x": x, "y": y, "z": z} for label, (x, y, z) in rows]
