"""Heads that differ, heads that are joined, and what they cost."""

import math

import numpy as np
import pytest
import torch

from tests.core.analysis.why.conftest import TEXT
from transformer_core.analysis.timing import median_seconds
from transformer_core.analysis.why.many_heads import cost_of_heads, divergence, heads_of_layer, one_by_one
from transformer_core.bundle import Bundle
from transformer_core.layers.attention import MultiHeadAttention


def test_divergence_is_none_for_alike_and_one_bit_for_disjoint() -> None:
    first, second = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 0.1, 0.9])
    assert divergence(first, first) == 0
    assert divergence(first, second) == pytest.approx(1.0)
    assert divergence(first, second) == divergence(second, first)


def test_the_joined_head_adds_up_the_heads(bundle: Bundle) -> None:
    found = heads_of_layer(bundle=bundle, text=TEXT, n_tokens=12, layer=1)
    np.testing.assert_allclose(found.joined.sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(np.diag(found.divergence), 0.0, atol=1e-7)
    assert 1 <= found.targets <= len(found.weights)
    assert 0 <= found.mean_divergence <= 1
    assert max(found.entropy, found.joined_entropy) <= math.log(len(found.labels)) + 1e-6


def test_heads_one_by_one_are_the_reshaped_heads() -> None:
    attention = MultiHeadAttention(24, 3)
    x = torch.randn(2, 5, 24)
    torch.testing.assert_close(one_by_one(attention, x), attention(x))


def test_cutting_a_width_into_heads_changes_no_count() -> None:
    found = cost_of_heads(d_model=32, n_tokens=12, seed=0, measurement=0)
    assert set(found.parameters.tolist()) == {4 * 32 * 32 + 4 * 32}
    assert set(found.multiplications.tolist()) == {4 * 12 * 32**2 + 2 * 12**2 * 32}
    assert found.exponentials.tolist() == [heads * 144 for heads in found.heads.tolist()]
    assert found.difference.max() < 1e-5
    assert found.seconds.min() > 0


def test_a_median_takes_at_least_five_calls_and_stops_in_time() -> None:
    calls = []
    assert median_seconds(lambda: calls.append(sum(range(100_000))), within=0.0) > 0
    assert len(calls) == 6
    calls.clear()
    median_seconds(lambda: calls.append(None), repeats=8, within=9.0)
    assert len(calls) == 9
