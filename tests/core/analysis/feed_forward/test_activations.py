"""Activations as curves, and GELU as the mean of a coin: against formulas typed by hand."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers import ROOT
from tests.helpers.engine import exactly
from transformer_core.analysis.feed_forward.activations import own_activations, value_and_slope
from transformer_core.analysis.feed_forward.bernoulli import coin_tosses
from transformer_core.analysis.timing import log_log_slope
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.layers.feed_forward import ACTIVATIONS

X = torch.linspace(-5, 5, 401, dtype=torch.float64)
C = math.sqrt(2 / math.pi)


@pytest.fixture(scope="module")
def sentiment() -> Bundle:
    """Return the shipped classifier."""
    return load(ROOT / "assets" / "checkpoints" / "sentiment", device="cpu")


def phi(x: torch.Tensor) -> torch.Tensor:
    """Return the density of N(0, 1)."""
    return torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def cdf(x: torch.Tensor) -> torch.Tensor:
    """Return Phi, by the error function."""
    return (1 + torch.erf(x / math.sqrt(2))) / 2


def by_hand(name: str, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return value and derivative of an activation, from its formula."""
    if name == "relu":
        return x.clamp(min=0), (x > 0).double()
    if name == "gelu":
        return x * cdf(x), cdf(x) + x * phi(x)
    if name == "silu":
        chance = 1 / (1 + torch.exp(-x))
        return x * chance, chance * (1 + x * (1 - chance))
    inner = torch.tanh(C * (x + 0.044715 * x**3))
    slope = 0.5 * (1 + inner) + 0.5 * x * (1 - inner**2) * C * (1 + 3 * 0.044715 * x**2)
    return 0.5 * x * (1 + inner), slope


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_values_and_derivatives_are_those_of_the_formulas(name: str) -> None:
    value, slope = value_and_slope(ACTIVATIONS[name], X)
    expected_value, expected_slope = by_hand(name, X)
    torch.testing.assert_close(value, expected_value, atol=1e-12, rtol=0)
    torch.testing.assert_close(slope, expected_slope, atol=1e-12, rtol=0)


def test_a_sentence_lies_on_the_axis_that_is_drawn(sentiment: Bundle) -> None:
    found = own_activations(bundle=sentiment, text="a dull film", n_tokens=9, layer=1, token=2)
    assert found.counts.sum() == found.neurons == 5 * sentiment.config.d_ff
    assert found.token_counts.sum() == len(found.token_values) == sentiment.config.d_ff
    assert np.all(found.token_counts <= found.counts)
    assert found.below_zero == pytest.approx(found.counts[found.edges[1:] <= 1e-9].sum() / found.neurons, abs=1e-3)
    assert found.own_difference <= found.axis_difference * 1.01
    difference = F.gelu(X) - F.gelu(X, approximate="tanh")
    assert found.axis_difference == pytest.approx(float(difference.abs().max()), rel=1e-3)
    assert found.names[found.names.index(found.used)] == "gelu"


def test_a_layer_or_a_token_that_is_not_there_is_named(sentiment: Bundle) -> None:
    with pytest.raises(ValueError, match=exactly("layer=4 must be from 0 to 3")):
        own_activations(bundle=sentiment, text="a dull film", n_tokens=9, layer=4, token=0)
    with pytest.raises(ValueError, match=exactly("token=5 must be from 0 to 4")):
        own_activations(bundle=sentiment, text="a dull film", n_tokens=9, layer=0, token=5)


@pytest.mark.parametrize("x", [-1.5, 0.3, 1.0, 2.0])
def test_the_mean_of_the_coin_approaches_gelu_as_one_over_the_root(x: float) -> None:
    found = coin_tosses(x=x, draws=10_000, seed=3)
    assert found.expected == pytest.approx(float(F.gelu(torch.tensor(x, dtype=torch.float64))), abs=1e-12)
    assert found.mean == pytest.approx(found.kept.mean() * x)
    deviation = abs(x) * math.sqrt(found.probability * (1 - found.probability))
    assert found.error < 4.5 * deviation / 100
    np.testing.assert_allclose(found.root_mean_square, deviation / np.sqrt(found.sizes), rtol=0.25)
    assert found.slope == pytest.approx(-0.5, abs=0.05)


def test_the_same_seed_tosses_the_same_and_another_differently() -> None:
    first, again, other = (coin_tosses(x=1.0, draws=200, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.kept, again.kept)
    assert (first.kept != other.kept).any()


def test_a_coin_that_cannot_err_has_no_slope() -> None:
    assert math.isnan(coin_tosses(x=0.0, draws=100, seed=0).slope)
    assert math.isnan(log_log_slope(np.array([1.0, 2.0]), np.array([0.0, 1.0])))
    assert log_log_slope(np.array([1.0, 10.0, 100.0]), np.array([3.0, 0.3, 0.03])) == pytest.approx(-1)


def test_too_many_draws_are_refused() -> None:
    with pytest.raises(ValueError, match=exactly("draws=20000 must be from 10 to 10000")):
        coin_tosses(x=1.0, draws=20_000, seed=0)
