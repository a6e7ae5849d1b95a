"""A result as arrays: every field by name, however deep, and nothing that numpy could only keep as an object."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from transformer_core.analysis.arrays import arrays_of


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
