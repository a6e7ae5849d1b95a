"""A trace is a mapping that knows its size and says what it holds."""

import pytest
import torch

from tests.helpers.engine import exactly
from transformer_core.trace import Trace


def test_a_trace_is_a_mapping():
    trace = Trace({"a.weights": torch.zeros(2, 3), "b.weights": torch.ones(2, 3), "b.scores": torch.ones(4)})
    assert len(trace) == 3
    assert list(trace) == ["a.weights", "b.weights", "b.scores"]
    assert "a.weights" in trace
    assert "weights" not in trace
    assert trace.nbytes == 4 * (6 + 6 + 4)
    assert list(trace.select("*.weights")) == ["a.weights", "b.weights"]
    assert trace.stack("*.weights").shape == (2, 2, 3)
    assert trace.site("a.weights").scale == "probability"


def test_errors_of_a_trace_name_the_values():
    trace = Trace({"a.weights": torch.zeros(2), "b.scores": torch.zeros(3)})
    with pytest.raises(KeyError, match=r"'a\.heads' was not recorded; recorded: a\.weights, b\.scores"):
        trace["a.heads"]
    with pytest.raises(KeyError, match=r"'a\.heads' was not recorded; recorded: nothing"):
        Trace()["a.heads"]
    nothing = "pattern='*.mean' matches nothing recorded; recorded: a.weights, b.scores"
    with pytest.raises(ValueError, match=exactly(nothing)):
        trace.stack("*.mean")
    several = "pattern='*' matches tensors of several shapes: a.weights (2,), b.scores (3,); name one site"
    with pytest.raises(ValueError, match=exactly(several)):
        trace.stack("*")
