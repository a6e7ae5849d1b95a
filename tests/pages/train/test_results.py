"""What a run came to: the verdict and the answer to the prediction follow from its numbers."""

from pathlib import Path

import numpy as np
import pytest

from pages.language import words
from pages.train.results import Outcome, outcome, points_apart, separation, verdict_words
from tests.helpers.made_runs import made_run
from transformer_core.training.runs.store.records import StoredPoints

MANY = {"train": 100_000, "held_out": 100_000}


@pytest.mark.parametrize(
    ("train", "held_out", "verdict"),
    [(0.99, 0.97, "holds"), (1.0, 0.72, "memorises"), (0.83, 0.81, "nothing"), (0.5, 0.5, "nothing")],
)
def test_the_verdict_follows_from_the_numbers(train: float, held_out: float, verdict: str, tmp_path: Path) -> None:
    found = outcome(made_run(tmp_path, train=train, held_out=held_out))
    assert found is not None
    assert found.verdict == verdict
    assert verdict_words(found)


@pytest.mark.parametrize(
    ("train", "held_out", "counts", "verdict"),
    [
        (0.95, 0.85, MANY, "memorises"),
        (0.95, 0.8504, MANY, "memorises"),  # 9.96 points are shown as 10.0
        (0.95, 0.8506, MANY, "holds"),
        (0.95, 0.85, {"train": 64, "held_out": 50}, "unsure"),
        (0.83, 0.82, MANY, "holds"),
        (0.83, 0.819, MANY, "nothing"),
        (0.83, 0.83, {"train": 64, "held_out": 600}, "unsure"),  # 3.0 points, +- 3.0
        (0.83, 0.832, {"train": 64, "held_out": 600}, "holds"),
        (0.95, 0.85, {}, "memorises"),  # of a run that says not of how many
    ],
)
def test_each_verdict_begins_at_its_border(train: float, held_out: float, counts: dict, verdict: str) -> None:
    assert Outcome(3, train, held_out, {"bag_of_words": 0.8}, counts).verdict == verdict


def test_nothing_is_compared_where_there_is_no_rule() -> None:
    assert Outcome(3, 0.5, 0.45, {}).verdict == "measured"
    assert verdict_words(Outcome(3, 0.5, 0.45, {})) == ""


def of_classes(train: int, held_out: int) -> StoredPoints:
    """Return points, half of them of each of two classes."""
    count = train + held_out
    return StoredPoints([""] * count, np.arange(count) % 2, np.arange(count) >= train)


@pytest.mark.parametrize(
    ("train", "held_out", "apart"),
    [
        (0.58, 0.60, "neither"),
        (1.0, 0.60, "train"),
        (1.0, 0.80, "train"),  # of 200 points: from 73.9 to 85.0 %, of which the lower end is below three quarters
        (1.0, 0.82, "both"),
        (0.80, 0.82, "held_out"),
    ],
)
def test_points_are_apart_where_their_interval_is_above_the_border(train: float, held_out: float, apart: str) -> None:
    assert points_apart(train, held_out, of_classes(200, 200)) == apart
    assert f"result.apart_{apart}" in words("en")


@pytest.mark.parametrize(
    ("numbers", "came"),
    [
        ((0.99, 0.98), "as_well"),
        ((0.99, 0.971), "as_well"),
        ((0.99, 0.97), "less"),
        ((0.99, 0.75), "less"),
        ((0.99, 0.74), "hardly"),
        ((0.58, 0.60), "neither"),
        ((0.80, 0.60), "neither"),
        ((0.82, 0.60), "hardly"),
    ],
)
def test_how_well_held_out_points_separate(numbers: tuple, came: str) -> None:
    assert separation(*numbers, np.arange(200) % 2) == came
