"""The feed-forward layer is eq. 2, and each activation its formula."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close, exactly, lively
from transformer_core.layers.feed_forward import FeedForward, gelu, gelu_tanh, relu
from transformer_core.probe import Probe

numbers = st.floats(-10, 10, width=32)


def of(activation, x: float) -> float:
    return float(activation(torch.tensor(x, dtype=torch.float64)))


@given(numbers)
def test_activations_are_their_formulas(x):
    assert of(relu, x) == max(0.0, x)
    assert of(gelu, x) == pytest.approx(x * 0.5 * (1 + math.erf(x / math.sqrt(2))), abs=1e-12)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    assert of(gelu_tanh, x) == pytest.approx(0.5 * x * (1 + math.tanh(inner)), abs=1e-12)


def test_the_tanh_approximation_is_near_but_not_the_same():
    x = torch.linspace(-4, 4, 100)
    difference = (gelu(x) - gelu_tanh(x)).abs().max()
    assert 1e-5 < difference < 1e-3


@pytest.mark.parametrize(("name", "activation"), [("relu", relu), ("gelu", gelu), ("gelu_tanh", gelu_tanh)])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_equation_2(name, activation, bias):
    layer = lively(FeedForward(6, 10, activation=name, bias=bias))
    x, probe = torch.randn(2, 3, 6), Probe()
    first, second = layer.inner_proj, layer.outer_proj
    before = x @ first.weight.T + (first.bias if bias else 0)
    expected = activation(before) @ second.weight.T + (second.bias if bias else 0)
    close(layer(x, probe=probe), expected)
    close(probe.trace["pre_activation"], before)
    close(probe.trace["activation"], activation(before))
    close(probe.trace["output"], layer(x))


def test_every_position_is_mapped_alone():
    layer, x = lively(FeedForward(6, 10)), torch.randn(2, 3, 6)
    close(layer(x)[:, 1:2], layer(x[:, 1:2]))


def test_an_unknown_activation_is_named():
    message = "activation='swish' is unknown; it must be one of 'relu', 'gelu', 'gelu_tanh', 'silu'"
    with pytest.raises(ValueError, match=exactly(message)):
        FeedForward(6, 10, activation="swish")
