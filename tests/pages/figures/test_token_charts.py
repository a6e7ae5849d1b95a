"""A text as a strip of tokens, the likeliest tokens as bars, and the board of the lens: what they draw, not how."""

import numpy as np
import pytest

from pages.figures.charts import columns_of, rows_of, specification, to_svg
from pages.figures.lens import lens_board
from pages.figures.likeliest import distinct, expected_bars, redrawn_bars
from pages.figures.token_strip import LINE, laid_out, text_strip

WORDS = {
    name: name
    for name in (
        *("token", "bits", "probability", "expected", "came", "others", "rest", "before", "after", "cut"),
        *("stage", "place", "choice", "choice_probability", "answer", "answer_probability", "answer_rank"),
        *("embedding", "unknown"),
    )
} | {"layer": "Layer {number}", "bits_most": "{bits} and more"}


def test_cells_lie_side_by_side_and_no_line_is_too_long() -> None:
    labels = ["word", "你好", "a", "b" * 30] * 12
    line, left, right = laid_out(labels)
    assert right.max() <= LINE
    assert (right > left).all()
    same = line[1:] == line[:-1]
    np.testing.assert_array_equal(left[1:][same], right[:-1][same])
    assert columns_of("你好") == 4


def test_the_strip_holds_every_token_with_its_number() -> None:
    strip = text_strip(["a", "b", "?"], [float("nan"), 2.5, float("nan")], {"rank": ["", "3", ""]}, WORDS, chosen=1)
    rows = rows_of(strip)
    assert [row["bits"] for row in rows] == [None, 2.5, None]
    assert [row["place"] for row in rows] == [0, 1, 2]
    assert rows[1]["about0"] == "3"
    assert "<svg" in to_svg(strip)


def test_a_token_that_nothing_foresaw_has_no_colour_and_the_legend_says_so() -> None:
    told = str(specification(text_strip(["a", "b"], [float("nan"), 2.5], {}, WORDS, chosen=1)))
    assert "'domain': ['unknown']" in told
    assert "12 and more" in told
    assert "'domain': ['unknown']" not in str(specification(text_strip(["b"], [2.5], {}, WORDS, chosen=0)))


def test_bars_hold_all_of_the_probability() -> None:
    bars = expected_bars(["a", "a"], np.array([0.5, 0.2]), 0.3, WORDS, came=("z", 0.1, 9))
    rows = rows_of(bars)
    assert sum(row["chance"] for row in rows) == pytest.approx(1.0)
    assert [row["token"] for row in rows] == ["a", "a (2)", "9 · z", "rest"]
    assert distinct(["x", "x", "y"]) == ["x", "x (2)", "y"]


def test_what_was_cut_is_said() -> None:
    bars = redrawn_bars(["a", "b"], [0.6, 0.3], [1.0, 0.0], [True, False], (0.1, 0.0), WORDS, chosen=0)
    rows = rows_of(bars)
    assert [row["kind"] for row in rows] == ["before", "cut", "cut", "after", "after", "after"]
    assert rows[0]["token"] == "▸ a"
    left = redrawn_bars(["a", "b"], [0.6, 0.3], [0.6, 0.3], [True, True], (0.1, 0.1), WORDS)
    assert [row["kind"] for row in rows_of(left)] == ["before"] * 3 + ["after"] * 3


def test_the_board_of_the_lens_has_a_cell_a_stage_and_place() -> None:
    ones = np.ones((2, 2))
    board = lens_board([["a", "b"], ["c", "b"]], ones / 2, ones / 4, ones * 3, [1, 2], "xy", "cb", WORDS, chosen=2)
    cells = rows_of(board)
    assert [cell["stage"] for cell in cells] == ["embedding", "embedding", "Layer 0", "Layer 0"]
    assert [cell["settled"] for cell in cells] == [False, True, True, True]
    assert cells[0]["column"] == "0 x"
