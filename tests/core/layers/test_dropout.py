"""Dropout: how much is dropped, that the mean stays, that evaluation drops nothing, and that a seed repeats it."""

import pytest
import torch

from transformer_core.layers.dropout import Dropout, drop


@pytest.mark.parametrize("probability", [0.1, 0.4, 0.9])
def test_the_share_dropped_is_the_probability_and_the_mean_stays(probability: float) -> None:
    ones = torch.ones(997, 1_003)
    dropped = drop(ones, probability)
    share = round(probability * 256) / 256
    assert float((dropped == 0).float().mean()) == pytest.approx(share, abs=0.002)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.01)
    assert len(dropped.unique()) == 2


def test_every_place_is_decided_on_its_own() -> None:
    dropped = (drop(torch.ones(64, 4_096), 0.5) == 0).double()
    agreement = torch.corrcoef(dropped.T[:16])
    assert float((agreement - torch.eye(16)).abs().max()) < 0.6
    assert float(dropped.mean(0).std()) == pytest.approx(0.5 / 8, rel=0.1)  # of a mean over 64 fair coins


def test_gradients_pass_where_values_do() -> None:
    x = torch.randn(50, 40, requires_grad=True)
    y = drop(x, 0.3)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, y != 0)


def test_evaluation_and_probability_zero_change_nothing() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_the_same_seed_drops_the_same() -> None:
    x = torch.ones(33, 7)
    torch.manual_seed(5)
    once = drop(x, 0.4)
    torch.manual_seed(5)
    assert torch.equal(once, drop(x, 0.4))
