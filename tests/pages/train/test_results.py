"""What a run came to: the verdict and the answer to the prediction follow from its numbers."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from pages.language import words
from pages.train.results import (
    Divergence,
    Outcome,
    diverged_words,
    divergence,
    outcome,
    points_apart,
    separation,
    verdict_words,
)
from tests.helpers.made_runs import made_run
from tests.helpers.pages import run, told
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import DivergedError, Run
from transformer_core.training.runs.errors import words_of
from transformer_core.training.runs.store.records import Curves, Frame, StoredPoints

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


def curved(losses: Sequence[float]) -> Curves:
    step = np.arange(1, len(losses) + 1)
    return Curves(step, np.array(losses), *(np.ones(len(losses)) for _ in range(3)))


def framed(*losses: float | None) -> list[Frame]:
    """Return a frame every second step."""
    measures = [{} if loss is None else {"train_loss": loss} for loss in losses]
    return [Frame(number, 2 * number, number, 0.0, found) for number, found in enumerate(measures)]


@pytest.mark.parametrize(
    ("losses", "curve", "diverged"),
    [
        ((0.7, 0.2, 2.0), [0.5, 0.2, 1.9, 2.1], None),  # DIVERGED times 1.0, and no more
        ((0.7, 0.2, 2.01), [0.5, 0.2, 1.9, 2.1], Divergence(4, 1.0, 2.01)),
        ((0.7, 0.2, 2.01), [0.5, 0.2, 2.1, 2.1], Divergence(3, 1.0, 2.01)),
        ((0.7, 600.0, 600.0), [500.0, 600.0, 600.0, 600.0], Divergence(1, 1.0, 600.0)),
        ((0.7, 600.0, 1.0), [500.0, 600.0, 3.0, 1.0], None),  # it came back
        ((1.5, 3.0), [1.5, 3.5], None),  # it began with more than guessing gives
        ((1.5, 3.01), [1.5, 3.5], Divergence(2, 1.5, 3.01)),
        ((1e-6, 1e-3), [1e-6, 1e-3], None),  # it began with a model that knew the answers
        ((0.7, None), [0.7, np.nan], Divergence(2, 1.0, None)),
        ((), [], None),
    ],
)
def test_a_run_has_diverged_where_its_loss_ends_far_above_the_usual_one(
    losses: tuple[float | None, ...], curve: list[float], diverged: Divergence | None
) -> None:
    assert divergence(framed(*losses), curved(curve), guess=1.0) == diverged


def test_a_run_that_ended_in_no_number_says_at_which_step() -> None:
    weights = torch.nn.Linear(1, 1)
    training = Run(weights, lambda model, batch: model(batch).sum() * math.nan, lambda _: [torch.ones(1, 1)] * 2,
              steps_per_epoch=2, config=TrainConfig(learning_rate=10.0))  # fmt: skip
    with pytest.raises(DivergedError) as caught:
        next(training.steps())
    found = divergence(framed(0.7), curved([]), guess=0.1, message=words_of(caught.value))
    assert found == Divergence(1, 0.7, None)
    said = diverged_words(found, TrainConfig(learning_rate=10.0, warm_up=0.0, clip_norm=None))
    assert "at step 1" in said
    assert "a learning rate of 1, a tenth, or a warm-up" in said
    assert "bound of 1" in said
    assert "warm-up" not in diverged_words(found, TrainConfig(learning_rate=10.0, warm_up=0.1, clip_norm=1.0))


def test_of_a_diverged_run_no_rule_no_map_and_no_trust_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    store = made_run(tmp_path, train=-599.0, held_out=0.4)  # made_run's loss is 1 - accuracy
    found = outcome(store)
    assert found is not None
    assert found.diverged is not None
    assert found.verdict == "diverged"
    said = told(run("train", run=store.id))
    assert "The run has diverged" in said
    assert "it ends at 600" in said
    for other in ("against a simple rule", "rustworthiness", "In the full space"):
        assert other not in said


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
