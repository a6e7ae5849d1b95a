"""Charts that follow a key: other numbers are other rows of the same form, and the rows hold what was computed."""

import numpy as np
import pytest

from pages.embeddings.figures.vectors import norm_bars
from pages.encoder.figures import stage_lines
from pages.feed_forward.figures.activations import curves_chart, difference_chart
from pages.figures.charts import Filled, rows_of, to_svg
from pages.norm.figures import scaled_chart, variants_chart, vector_chart
from pages.positions.figures.waves import similarity_chart
from pages.tokens.figures import cost_chart
from pages.ui.language import words

WIDTH, BINS = 12, 40
REACH = 4.0


def words_of(page: str) -> dict[str, str]:
    """Return a page's words, as its figures get them."""
    return {name.removeprefix(f"{page}."): said for name, said in words("en").items() if name.startswith(f"{page}.")}


NORM, FEED_FORWARD = words_of("norm"), words_of("feed_forward")


def vector(seed: int) -> dict[str, np.ndarray]:
    """Return what a normalised vector comes with, at random."""
    draw = np.random.default_rng(seed).normal
    found = {name: draw(size=WIDTH).astype(np.float32) for name in ("x", "standard", "gain", "bias", "after")}
    return found | {"mean": found["x"].mean(), "variance": found["x"].var()}


def activations(seed: int) -> dict[str, np.ndarray]:
    """Return two activations and numbers at random on their axis."""
    draw = np.random.default_rng(seed)
    x = np.linspace(-REACH, REACH, 801)
    curves = np.stack([x.clip(min=0), x / (1 + np.exp(-x))])
    counts, token_counts = draw.integers(1, 9, size=(2, BINS))
    return {
        "names": np.array(["relu", "silu"]),
        "x": x,
        "values": curves,
        "slopes": np.gradient(curves, x, axis=1),
        "edges": np.linspace(-REACH, REACH, BINS + 1),
        "counts": counts,
        "token_counts": token_counts,
        "token_values": draw.uniform(-3, 3, size=WIDTH),
    }


def charts(seed: int) -> dict[str, Filled]:
    """Return every chart, of numbers drawn with this seed."""
    found, active, draw = vector(seed), activations(seed), np.random.default_rng(seed)
    stages, counts = {"mean": draw.random(3), "CLS": draw.random(3)}, draw.integers(1, 90, size=2).tolist()
    return {
        "vector": vector_chart(found, NORM),
        "variants": variants_chart(found["after"], found["x"], NORM),
        "scaled": scaled_chart(found["after"], found["x"], NORM),
        "curves": curves_chart(active, FEED_FORWARD, used="relu", token=f"{seed} · good"),
        "difference": difference_chart(active["x"], draw.normal(size=801), FEED_FORWARD),
        "norms": norm_bars(
            np.abs(found["x"]), [f"{letter}{seed}" for letter in "abcdefghijkl"], words_of("embeddings")
        ),
        "stages": stage_lines(("0", "1", "2"), stages, {"stage": "depth", "value": "chance"}, level=0.5),
        "cost": cost_chart(("a", "b"), counts, [n * n for n in counts], {"tokens": "n", "pairs": "n²"}),
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


def test_pre_activations_lie_on_the_curve_of_the_model_and_are_counted() -> None:
    found = activations(3)
    rows = rows_of(curves_chart(found, FEED_FORWARD, used="relu", token="3 · good"))
    own = [row for row in rows if "neuron" in row]
    np.testing.assert_allclose([row["x"] for row in own], found["token_values"], atol=1e-4)
    np.testing.assert_allclose([row["y"] for row in own], found["token_values"].clip(min=0), atol=1e-2)
    counted = [row["count"] for row in rows if "share" in row]
    assert counted == [*found["counts"].tolist(), *found["token_counts"].tolist()]


def test_what_a_key_leaves_as_it_is_is_built_once() -> None:
    values = np.array([1.0, 0.5, 0.25])
    one, same, other = (similarity_chart(x, words_of("positions"), measure="dot") for x in (values, values, values / 2))
    assert one is same
    assert [row["similarity"] for row in rows_of(one)] == values.tolist()
    assert [row["similarity"] for row in rows_of(other)] == (values / 2).tolist()
