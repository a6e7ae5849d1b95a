"""Labels of logarithmic axes, as the chart really draws them."""

import re

import altair as alt
import pytest

from pages.figures.charts import records, to_svg
from pages.figures.log_axis import LABELS


@pytest.mark.parametrize(
    ("value", "label"),
    [(1e-12, "10⁻¹²"), (2e-8, "2×10⁻⁸"), (1e-4, "10⁻⁴"), (0.005, "0.005"), (1.0, "1"), (50.0, "50"), (1e7, "10⁷")],
)
def test_a_tick_is_labelled_as_in_a_book(value: float, label: str) -> None:
    axis = alt.Axis(labelExpr=LABELS, values=[value])
    scale = alt.Scale(type="log", domain=[value / 10, value * 10])
    chart = (
        alt.Chart(records(value=[value])).mark_point().encode(y=alt.Y("value:Q", title=None, scale=scale, axis=axis))
    )
    assert re.findall(r"<text[^>]*>([^<]*)</text>", to_svg(chart)) == [label]
