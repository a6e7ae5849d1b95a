"""A vector before and after its normalisation, with gain and bias: dimension by dimension.

Arrays come from transformer_core.analysis.stream.normalizing. Read next: norm_stream.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records

Words = Mapping[str, str]
BEFORE, AFTER, OTHER = HUES["residual"], HUES["query"], HUES["positions"]


def _across(count: int, *, title: str | None) -> alt.X:
    scale = alt.Scale(domain=[-0.5, count - 0.5], nice=False)
    return alt.X("low:Q", scale=scale, title=title, axis=alt.Axis(tickCount=8, labels=title is not None))


def _bars(values: np.ndarray, hue: str, *, y: str, title: str | None = None) -> alt.Chart:
    places = np.arange(len(values))
    data = records(
        dimension=places,
        low=places - 0.4,
        high=places + 0.4,
        zero=np.zeros(len(values)),
        value=values.astype(float),
    )
    return (
        alt.Chart(data)
        .mark_rect(color=hue)
        .encode(
            x=_across(len(values), title=title),
            x2="high:Q",
            y=alt.Y("value:Q", title=y, axis=alt.Axis(tickCount=5)),
            y2="zero:Q",
            tooltip=["dimension:Q", alt.Tooltip("value:Q", format=".5g")],
        )
    )


def _level(value: float, hue: str) -> alt.Chart:
    return alt.Chart(records(value=[value])).mark_rule(color=hue, strokeDash=[5, 4], strokeWidth=2).encode(y="value:Q")


def _marks(values: np.ndarray, hue: str) -> alt.Chart:
    data = records(dimension=np.arange(len(values)), low=np.arange(len(values)), value=values.astype(float).round(5))
    return (
        alt.Chart(data)
        .mark_point(shape="diamond", size=18, color=hue, filled=True, opacity=1)
        .encode(x=_across(len(values), title=None), y="value:Q", tooltip=["dimension:Q", "value:Q"])
    )


def vector_chart(found: Mapping[str, np.ndarray], words: Words) -> Chart:
    """Draw the vector before, standardised, and after, and the trained gain and bias, one under the other.

    Args:
        found: x, standard, after, gain, bias, mean and variance.
    """
    mean, deviation = float(found["mean"]), float(found["variance"]) ** 0.5
    before = alt.layer(
        _bars(found["x"], BEFORE, y="x"),
        _level(mean, HUES["key"]),
        *(_level(mean + sign * deviation, HUES["weights"]) for sign in (1, -1)),
    )
    standard = alt.layer(
        _bars(found["standard"], HUES["value"], y="(x − μ) / √(σ² + ε)"),
        *(_level(sign, HUES["weights"]) for sign in (1.0, -1.0)),
    )
    learned = alt.layer(_bars(found["gain"], HUES["weights"], y="g, b"), _marks(found["bias"], HUES["key"]))
    after = alt.layer(_bars(found["after"], AFTER, y="y", title=words["axis_dimension"]))
    told = words["title_before"].format(mean=f"{mean:.3f}", deviation=f"{deviation:.3f}")
    rows = (
        (before, told, 140),
        (standard, words["title_standard"], 110),
        (learned, words["title_learned"], 90),
        (after, words["title_after"], 120),
    )
    parts = [
        part.properties(width="container", height=height, title=alt.Title(title, anchor="start", fontSize=13))
        for part, title, height in rows
    ]
    return alt.vconcat(*parts, spacing=4)


def variants_chart(after: np.ndarray, unbiased: np.ndarray, words: Words) -> Chart:
    """Draw, for each dimension, how far the two variants differ."""
    return _bars(after - unbiased, OTHER, y=words["axis_difference"], title=words["axis_dimension"]).properties(
        width="container", height=180
    )


def scaled_chart(after: np.ndarray, scaled: np.ndarray, words: Words) -> Chart:
    """Draw the output as it was, in bars, and with its input multiplied, as diamonds."""
    bars = _bars(after, AFTER, y="y", title=words["axis_dimension"])
    return alt.layer(bars, _marks(scaled, HUES["key"])).properties(width="container", height=180)
