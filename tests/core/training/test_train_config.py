"""A training configuration is checked when it is made, and the schedule follows its formula."""

import math
import re

import pytest

from transformer_core.training.config import TrainConfig
from transformer_core.training.optimizers import learning_rate_at


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"optimizer": "lion"}, "optimizer='lion' is unknown; it must be one of 'adamw', 'adam', 'sgd', 'muon'"),
        ({"schedule": "linear"}, "schedule='linear' is unknown; it must be one of 'cosine', 'constant', 'noam'"),
        ({"precision": "float16"}, "precision='float16' is unknown; it must be one of 'float32', 'bfloat16'"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be a number greater than 0"),
        ({"learning_rate": math.nan}, "learning_rate=nan must be a number greater than 0"),
        ({"learning_rate": "fast"}, "learning_rate='fast' must be a number greater than 0"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1 must be a number at least 0"),
        ({"warm_up": 1.0}, "warm_up=1.0 must be a number at least 0 and less than 1"),
        ({"label_smoothing": -1}, "label_smoothing=-1 must be a number at least 0 and less than 1"),
        ({"clip_norm": 0}, "clip_norm=0 must be a number greater than 0"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number from 1 to 65536"),
        ({"batch_size": 1.5}, "batch_size=1.5 must be a whole number from 1 to 65536"),
        ({"epochs": True}, "epochs=True must be a whole number from 1 to 100000"),
        ({"seed": -1}, f"seed=-1 must be a whole number from 0 to {2**63 - 1}"),
    ],
)
def test_what_does_not_fit_is_refused_by_name_value_and_need(choice, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        TrainConfig(**choice)


def test_no_clipping_is_a_choice():
    assert TrainConfig(clip_norm=None).clip_norm is None


def test_warm_up_rises_to_the_highest_rate_and_cosine_falls_to_zero():
    config = TrainConfig(learning_rate=2.0, warm_up=0.2, schedule="cosine")
    rates = [learning_rate_at(step, 10, config) for step in range(10)]
    assert rates[:2] == [1.0, 2.0]
    assert rates[5] == pytest.approx(1.0)
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] == pytest.approx(0.0)


def test_noam_is_the_papers_formula_scaled_to_its_peak():
    config = TrainConfig(learning_rate=1.0, warm_up=0.25, schedule="noam")
    papers = [min(t**-0.5, t * 4**-1.5) for t in range(1, 17)]
    ours = [learning_rate_at(step, 16, config) for step in range(16)]
    assert ours == pytest.approx([rate / max(papers) for rate in papers])


def test_constant_stays():
    config = TrainConfig(learning_rate=0.5, warm_up=0.0, schedule="constant")
    assert {learning_rate_at(step, 7, config) for step in range(7)} == {0.5}


@pytest.mark.parametrize("schedule", ["cosine", "noam"])
def test_without_warm_up_the_first_step_is_near_the_highest_rate(schedule):
    config = TrainConfig(learning_rate=1.0, warm_up=0.0, schedule=schedule)
    assert learning_rate_at(0, 100, config) == pytest.approx(1.0, abs=0.01)


def test_a_step_outside_the_run_is_refused():
    with pytest.raises(ValueError, match="step=3 must be at least 0 and less than total_steps=3"):
        learning_rate_at(3, 3, TrainConfig())
