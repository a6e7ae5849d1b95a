"""Rank correlation: against Spearman's own formula, with ties, and where it cannot be told."""

import math

import numpy as np
import pytest

from transformer_core.analysis.rank_correlation import rank_correlation, ranks


def test_ranks_of_equal_values_are_their_mean() -> None:
    np.testing.assert_array_equal(ranks(np.array([10.0, 3.0, 10.0, 7.0])), [3.5, 1, 3.5, 2])


def test_without_ties_it_is_spearmans_formula() -> None:
    a, b = np.random.default_rng(0).random((2, 9))
    squares = ((ranks(a) - ranks(b)) ** 2).sum()
    assert rank_correlation(a, b).rho == pytest.approx(1 - 6 * squares / (9 * (81 - 1)))


def test_the_same_order_is_one_and_the_reverse_minus_one() -> None:
    a = np.arange(8.0)
    assert rank_correlation(a, np.exp(a)).rho == pytest.approx(1)
    assert rank_correlation(a, -a).rho == pytest.approx(-1)
    assert rank_correlation(a, a).chance < 0.01


def test_what_is_not_finite_is_left_out() -> None:
    a, b = np.array([np.nan, 1, 2, 3, 4.0]), np.array([9, 1, 2, 3, 4.0])
    assert rank_correlation(a, b).count == 4
    assert rank_correlation(a, b).rho == pytest.approx(1)


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [], [5.0] * 6])
def test_too_few_or_all_equal_have_no_rho(values: list[float]) -> None:
    found = rank_correlation(np.array(values), np.arange(float(len(values))))
    assert math.isnan(found.rho)
    assert found.count == len(values)


def test_measures_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(4,\)"):
        rank_correlation(np.arange(3.0), np.arange(4.0))
