"""Shares: intervals against printed and computed values, and differences of the same texts."""

import numpy as np
import pytest

from transformer_core.shares import interval, paired, share_interval, wilson


def test_wilsons_interval_against_a_printed_value() -> None:
    low, high = wilson(np.array([8.0, 0.0]), np.array([10, 0]))
    assert (low[0], high[0]) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert np.isnan(low[1])
    assert interval(0.8, 10) == (low[0], high[0])


@pytest.mark.parametrize(
    ("worse", "better", "chance"),
    [(5, 0, 2 / 32), (6, 0, 2 / 64), (0, 6, 2 / 64), (7, 1, 18 / 256), (3, 3, 1), (0, 0, 1)],
)
def test_the_sign_test_is_that_of_a_fair_coin(worse: int, better: int, chance: float) -> None:
    first = np.concatenate([np.ones(worse), np.zeros(better), np.ones(40)])
    second = np.concatenate([np.zeros(worse), np.ones(better), np.ones(40)])
    found = paired(first, second, np.ones(len(first)))
    assert (found.better, found.worse) == (better, worse)
    assert found.chance == pytest.approx(chance)
    assert found.is_significant == (chance < 0.05)
    assert found.moved == pytest.approx((better - worse) / len(first))
    assert found.low <= found.moved <= found.high


def test_intervals_hold_what_they_promise() -> None:
    rng, held = np.random.default_rng(1), {"share": 0, "difference": 0}
    for _ in range(200):
        words = rng.integers(5, 20, size=60)
        first = rng.binomial(words, rng.beta(6, 4, size=60))  # of answers that depend on their text
        second = rng.binomial(words, rng.beta(5, 5, size=60))
        low, high = share_interval(first, words)
        held["share"] += low <= 0.6 <= high
        difference = paired(first, second, words)
        held["difference"] += difference.low <= -0.1 <= difference.high
    assert all(count >= 180 for count in held.values()), held


def test_a_share_of_one_answer_a_text_is_never_beyond_doubt() -> None:
    assert share_interval(np.ones(48), np.ones(48))[0] == pytest.approx(0.926, abs=1e-3)
