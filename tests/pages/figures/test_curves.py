"""Charts of the Why? page hold what they are given, reveal it by steps, and tell series apart not by hue alone."""

import numpy as np
import pytest

from pages.figures.charts import rows_of, to_svg
from pages.figures.curves import Side, bars, curves, dots

X = np.array([1, 2, 4, 8])
SERIES = {"one": np.array([1.0, 2.0, 4.0, 8.0]), "two": np.array([3.0, np.nan, 0.0, 1.0])}


def ends(chart, channel: str) -> list[float]:
    """Return the ends of an axis."""
    specification = chart.to_dict()
    layers = specification.get("layer", [specification])
    return next(each["encoding"][channel]["scale"]["domain"] for each in layers if channel in each["encoding"])


def test_a_curve_ends_where_it_is_to_but_its_axes_hold_all() -> None:
    chart = curves(X, SERIES, across=Side("x", log=True), up=Side("y", log=True), upto=2)
    assert sorted((row["x"], row["y"]) for row in rows_of(chart)) == [(1, 1.0), (1, 3.0), (2, 2.0)]
    assert ends(chart, "x") == [1.0, 8.0]
    assert ends(chart, "y") == [1.0, 8.0]


def test_a_guide_is_drawn_to_its_end_and_named_in_the_chart() -> None:
    chart = curves(X, SERIES, across=Side("x"), up=Side("y"), upto=1, guides={"one": 4})
    drawn = [row for row in rows_of(chart) if row["series"] == "one" and "y" in row]
    assert {row["x"] for row in drawn} == {1, 2, 4, 8}
    assert ">one</text>" in to_svg(chart)


@pytest.mark.parametrize("points", [True, False])
def test_series_differ_in_more_than_hue(points: bool) -> None:
    encoding = curves(X, SERIES, across=Side("x"), up=Side("y"), points=points).to_dict()["encoding"]
    channel = encoding["shape" if points else "strokeDash"]["scale"]["range"]
    assert channel[0] != channel[1]


def test_bars_and_dots_show_every_value() -> None:
    assert [row["y"] for row in rows_of(bars(["a", "b"], {"s": [1.0, 2.0]}, across="x", up=Side("y")))] == [1.0, 2.0]
    chart = dots(["a", "b"], [1.0, 2.0], ["s", "t"], across="", up=Side("y"), details=["d", "e"], rules={"level": 3.0})
    assert {row.get("detail") for row in rows_of(chart)} == {"d", "e", None}
    assert ends(chart, "y") == [1.0, 3.0]
    assert ">level</text>" in to_svg(chart)


def test_nothing_to_show_is_no_error() -> None:
    assert to_svg(curves(X, {"none": np.full(4, np.nan)}, across=Side("x"), up=Side("y", log=True)))
