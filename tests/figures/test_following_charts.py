"""Charts that follow a key: other numbers are other rows of the same form, and the rows hold what was computed."""

import numpy as np
import pytest

from pages.figures.charts import Filled, rows_of, to_svg
from pages.figures.norm import scaled_chart, variants_chart, vector_chart
from pages.ui.language import words

WIDTH = 12
NORM = {name.removeprefix("norm."): said for name, said in words("en").items() if name.startswith("norm.")}


def vector(seed: int) -> dict[str, np.ndarray]:
    """Return what a normalised vector comes with, at random."""
    draw = np.random.default_rng(seed).normal
    found = {name: draw(size=WIDTH).astype(np.float32) for name in ("x", "standard", "gain", "bias", "after")}
    return found | {"mean": found["x"].mean(), "variance": found["x"].var()}


def charts(seed: int) -> dict[str, Filled]:
    """Return every chart, of numbers drawn with this seed."""
    found = vector(seed)
    return {
        "vector": vector_chart(found, NORM),
        "variants": variants_chart(found["after"], found["x"], NORM),
        "scaled": scaled_chart(found["after"], found["x"], NORM),
    }


@pytest.mark.parametrize("name", charts(0))
def test_other_numbers_are_other_rows_of_the_same_form(name: str) -> None:
    one, other = charts(1)[name], charts(2)[name]
    assert one.form == other.form
    assert rows_of(one) != rows_of(other)
    assert to_svg(one) != to_svg(other)


def test_a_normalised_vector_is_drawn_with_its_numbers() -> None:
    found, chart = vector(3), vector_chart(vector(3), NORM)
    rows = [row for row in rows_of(chart) if "standard" in row]
    for name in ("x", "standard", "gain", "bias", "after"):
        assert [row[name] for row in rows] == found[name].tolist()
    assert f"{found['mean']:.3f}" in to_svg(chart)
