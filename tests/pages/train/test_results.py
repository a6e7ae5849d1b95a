"""What a run came to: the verdict and the answer to the prediction follow from its numbers."""

from pathlib import Path

import pytest

from pages.train.results import Outcome, outcome, separation, verdict_words
from tests.helpers.made_runs import made_run


@pytest.mark.parametrize(
    ("train", "held_out", "verdict"),
    [(0.99, 0.97, "holds"), (1.0, 0.72, "memorises"), (0.83, 0.81, "nothing"), (0.5, 0.5, "nothing")],
)
def test_the_verdict_follows_from_the_numbers(train: float, held_out: float, verdict: str, tmp_path: Path) -> None:
    found = outcome(made_run(tmp_path, train=train, held_out=held_out))
    assert found is not None
    assert found.verdict == verdict
    assert verdict_words(found)


def test_nothing_is_compared_where_there_is_no_rule() -> None:
    assert Outcome(3, 0.5, 0.45, {}).verdict == "measured"
    assert verdict_words(Outcome(3, 0.5, 0.45, {})) == ""


@pytest.mark.parametrize(
    ("numbers", "came"), [((0.99, 0.98, 0.5), "as_well"), ((0.99, 0.85, 0.5), "less"), ((0.99, 0.6, 0.5), "hardly")]
)
def test_how_well_held_out_points_separate(numbers: tuple, came: str) -> None:
    assert separation(*numbers) == came
