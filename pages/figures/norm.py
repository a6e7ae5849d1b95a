"""A vector before and after its normalisation, with gain and bias: dimension by dimension.

Arrays come from transformer_core.analysis.stream.normalization. Read next: norm_stream.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.forms import Filled, form, named

Words = Mapping[str, str]
BEFORE, AFTER, OTHER = HUES["residual"], HUES["query"], HUES["positions"]
HALF_BAR = 0.4
TITLE_OF_ROWS = "data('levels').length ? data('levels')[0].title : ''"  # it has numbers of the vector in it


def _across(count: int, *, title: str | None) -> alt.X:
    scale = alt.Scale(domain=[-0.5, count - 0.5], nice=False)
    return alt.X("low:Q", scale=scale, title=title, axis=alt.Axis(tickCount=8, labels=title is not None))


def _dimensions() -> alt.Chart:
    ends = {"low": f"datum.dimension - {HALF_BAR}", "high": f"datum.dimension + {HALF_BAR}"}
    return named("dimensions").transform_calculate(**ends)


def _bars(field: str, hue: str, count: int, *, y: str, title: str | None = None) -> alt.Chart:
    return (
        _dimensions()
        .mark_rect(color=hue)
        .encode(
            x=_across(count, title=title),
            x2="high:Q",
            y=alt.Y(f"{field}:Q", title=y, axis=alt.Axis(tickCount=5)),
            y2=alt.datum(0),
            tooltip=["dimension:Q", alt.Tooltip(f"{field}:Q", format=".5g", title="value")],
        )
    )


def _levels(field: str) -> alt.Chart:
    hue = alt.condition("datum.deviations == 0", alt.value(HUES["key"]), alt.value(HUES["weights"]))
    return named("levels").mark_rule(strokeDash=[5, 4], strokeWidth=2).encode(y=f"{field}:Q", color=hue)


def _marks(field: str, hue: str, count: int) -> alt.Chart:
    across = _across(count, title=None)
    across.shorthand = "dimension:Q"
    return (
        named("dimensions")
        .mark_point(shape="diamond", size=18, color=hue, filled=True, opacity=1)
        .encode(
            x=across,
            y=f"{field}:Q",
            tooltip=["dimension:Q", alt.Tooltip(f"{field}:Q", format=".5~f", title="value")],
        )
    )


def vector_chart(found: Mapping[str, np.ndarray], words: Words) -> Filled:
    """Draw the vector before, standardised, and after, and the trained gain and bias, one under the other.

    Args:
        found: x, standard, after, gain, bias, mean and variance.
    """
    mean, deviation = float(found["mean"]), float(found["variance"]) ** 0.5
    columns = {name: found[name].astype(float) for name in ("x", "standard", "gain", "bias", "after")}
    count = len(found["x"])
    title = words["title_before"].format(mean=f"{mean:.3f}", deviation=f"{deviation:.3f}")
    levels = records(
        value=[mean, mean + deviation, mean - deviation],
        deviations=[0.0, 1.0, -1.0],
        title=[title] * 3,
    )
    rows = {"dimensions": records(dimension=np.arange(count), **columns), "levels": levels}
    said = ("axis_dimension", "title_standard", "title_learned", "title_after")
    return Filled(_vector(tuple((name, words[name]) for name in said), count), rows)


@form
def _vector(said: tuple[tuple[str, str], ...], count: int) -> Chart:
    words = dict(said)
    before = alt.layer(_bars("x", BEFORE, count, y="x"), _levels("value"))
    unit = _levels("deviations").transform_filter("datum.deviations != 0")
    standard = alt.layer(_bars("standard", HUES["value"], count, y="(x − μ) / √(σ² + ε)"), unit)
    learned = alt.layer(_bars("gain", HUES["weights"], count, y="g, b"), _marks("bias", HUES["key"], count))
    after = alt.layer(_bars("after", AFTER, count, y="y", title=words["axis_dimension"]))
    rows = (
        (before, alt.expr(TITLE_OF_ROWS), 140),
        (standard, words["title_standard"], 110),
        (learned, words["title_learned"], 90),
        (after, words["title_after"], 120),
    )
    parts = [
        part.properties(width="container", height=height, title=alt.Title(title, anchor="start", fontSize=13))
        for part, title, height in rows
    ]
    return alt.vconcat(*parts, spacing=4)


def variants_chart(after: np.ndarray, unbiased: np.ndarray, words: Words) -> Filled:
    """Draw, for each dimension, how far the two variants differ."""
    rows = records(dimension=np.arange(len(after)), value=(after - unbiased).astype(float))
    return Filled(_variants(len(after), words["axis_difference"], words["axis_dimension"]), {"dimensions": rows})


@form
def _variants(count: int, y: str, title: str) -> Chart:
    return _bars("value", OTHER, count, y=y, title=title).properties(height=180)


def scaled_chart(after: np.ndarray, scaled: np.ndarray, words: Words) -> Filled:
    """Draw the output as it was, in bars, and with its input multiplied, as diamonds."""
    rows = records(dimension=np.arange(len(after)), after=after.astype(float), scaled=scaled.astype(float))
    return Filled(_scaled(len(after), words["axis_dimension"]), {"dimensions": rows})


@form
def _scaled(count: int, title: str) -> Chart:
    bars = _bars("after", AFTER, count, y="y", title=title)
    return alt.layer(bars, _marks("scaled", HUES["key"], count)).properties(height=180)
