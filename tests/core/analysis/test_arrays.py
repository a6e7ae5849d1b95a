"""A result as arrays; rank correlation."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.rank_correlation import rank_correlation, ranks


@dataclass(frozen=True, eq=False)
class Result:
    values: Any
    more: Any = None


def test_fields_have_their_names_and_nothing_is_left_out_but_none() -> None:
    found = arrays_of(Result(torch.eye(2), ("a", "好")))
    assert found.keys() == {"values", "more"}
    np.testing.assert_array_equal(found["values"], np.eye(2))
    assert found["more"].tolist() == ["a", "好"]
    assert arrays_of(Result(1)).keys() == {"values"}


def test_what_lies_deeper_is_named_by_its_way() -> None:
    found = arrays_of({"runs": (Result(1.5), Result(np.arange(3), more=Result(True)))})
    assert found.keys() == {"runs.0.values", "runs.1.values", "runs.1.more.values"}
    assert found["runs.1.more.values"].dtype == bool


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (((1, 2), (3, 4)), {"values"}),
        (((1,), (2, 3)), {"values.0", "values.1"}),
        ((("a", 1.0), ("b", 2.0)), {"values"}),
        ((), {"values"}),
        ((np.ones(2), np.ones(3)), {"values.0", "values.1"}),
        ((1, None), {"values.0"}),
    ],
)
def test_sequences_are_one_array_or_many_and_never_objects(value: Any, names: set[str]) -> None:
    found = arrays_of(Result(value))
    assert found.keys() == names
    assert all(array.dtype != object for array in found.values())


def test_half_precision_can_be_saved() -> None:
    assert arrays_of(Result(torch.ones(2, dtype=torch.bfloat16)))["values"].dtype == np.float32


def test_anything_else_is_refused_by_its_type() -> None:
    with pytest.raises(ValueError, match="type list must be a dataclass, a mapping or a trace"):
        arrays_of([1])


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
