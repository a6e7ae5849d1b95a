"""Figures of embeddings hold the numbers that they are given, and names on the map do not overlap."""

import numpy as np
import pytest

from pages.embeddings.figures.map import (
    Points,
    colour_bound,
    extremes,
    readable,
    to_html,
    vocabulary_scatter,
    vocabulary_space,
)
from pages.embeddings.figures.map import rows_of as rows_in_space
from pages.embeddings.figures.vectors import (
    cosine_matrix,
    norm_bars,
    one_hot_matrix,
    product_matrix,
    same_word_curve,
    vectors_matrix,
    word_bars,
)
from pages.figures.charts import rows_of
from tests.helpers.pages import strings

RNG = np.random.default_rng(0)
LABELS = ("it's", 'a "b"', "\\n")
WORDS, UI = strings("embeddings"), strings("matrix")


def test_matrices_hold_their_values_and_printed_bounds() -> None:
    vectors = RNG.normal(size=(3, 5)).astype(np.float32)
    figure = vectors_matrix(vectors, LABELS, WORDS)
    (panel,) = figure.panels
    assert panel.values is vectors
    assert panel.scale.high == pytest.approx(np.abs(vectors).max())
    assert figure.to_bytes()
    cosine = cosine_matrix(np.eye(3), LABELS, WORDS)
    assert (cosine.panels[0].scale.low, cosine.panels[0].scale.high) == (-1.0, 1.0)
    assert cosine.rows.key == figure.rows.key
    assert cosine.link == figure.link


def test_the_third_line_of_the_product_is_the_difference() -> None:
    row = RNG.normal(size=5)
    figure = product_matrix(row, row, WORDS)
    assert not figure.panels[0].values[2].any()
    hot = one_hot_matrix(np.eye(3)[:, :1], RNG.normal(size=(3, 5)), [7, 8, 9], LABELS, WORDS)
    assert hot.rows.labels[0].startswith("7")
    assert hot.to_bytes()


def test_bars_and_curves_hold_their_numbers() -> None:
    values = np.array([0.5, 0.25, -0.125])
    chart = word_bars(LABELS, values, [True, False, False], WORDS, title="cosine", names=("a", "b"), average=0.1)
    rows = [row for row in rows_of(chart) if "place" in row]
    assert [row["value"] for row in rows] == values.tolist()
    assert [row["kind"] for row in rows] == ["b", "a", "a"]
    assert rows[0]["word"].startswith("● ")
    assert [row["norm"] for row in rows_of(norm_bars(values, LABELS, WORDS))] == values.tolist()
    assert [row["cosine"] for row in rows_of(same_word_curve(values, WORDS))] == values.tolist()


def test_a_name_that_would_overlap_an_earlier_one_is_left_out() -> None:
    xy = np.array([[0.0, 0.0], [0.001, 0.0], [1.0, 1.0]])
    taken: list[tuple[float, ...]] = []
    assert readable(xy, ("good", "great", "bad"), [0, 1, 2], taken) == [0, 2]
    assert len(taken) == 2
    assert readable(xy, ("good", "great", "bad"), [1], taken) == []


def test_the_map_draws_every_point_and_names_the_marks() -> None:
    values = RNG.normal(size=40)
    labels = tuple(f"w{place}" for place in range(40))
    points = Points(RNG.normal(size=(40, 2)), labels, values=values, marks={3: "searched", 4: "neighbour"})
    rows = rows_of(vocabulary_scatter(points, WORDS, axes=("x", "y")))
    dots = [row for row in rows if "value" in row]
    assert [row["value"] for row in dots] == values.tolist()
    assert {row["side"] for row in dots} == {WORDS["side_up"], WORDS["side_down"]}
    assert dots[3]["mark"] == WORDS["mark_searched"]
    assert extremes(values, 2)[0] == int(np.abs(values).argmax())
    assert colour_bound(np.zeros(3)) == 1.0


def test_space_holds_every_point_and_shows_no_markup() -> None:
    points = Points(RNG.normal(size=(3, 3)), ("<b>", "x", "y"), marks={0: "searched"})
    figure = vocabulary_space(points, WORDS, axes=("a", "b", "c"))
    (dots, *_) = figure.to_dict()["data"]
    assert list(dots["x"]) == points.xy[:, 0].tolist()
    assert dots["hovertext"][0] == "&lt;b&gt;"
    assert rows_in_space(points)[2]["token"] == "y"
    assert "<script src" not in to_html(figure)
