"""Scores are their formulas, written out in loops."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close
from transformer_core.layers.attention import AdditiveScores, dot_product_scores, masked_softmax

QUERY, KEY = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6)


@pytest.mark.parametrize("scale", [True, False])
def test_dot_products(scale):
    scores = dot_product_scores(QUERY, KEY, scale=scale)
    assert scores.shape == (2, 3, 4, 5)
    for b, h, i, j in ((0, 0, 0, 0), (1, 2, 3, 4), (1, 0, 2, 1)):
        expected = sum(QUERY[b, h, i, k].item() * KEY[b, h, j, k].item() for k in range(6))
        assert scores[b, h, i, j].item() == pytest.approx(expected / (math.sqrt(6) if scale else 1), abs=1e-5)


def test_additive_scores():
    layer = AdditiveScores(3, 6)
    torch.nn.init.normal_(layer.weight)
    scores = layer(QUERY, KEY)
    assert scores.shape == (2, 3, 4, 5)
    for b in range(2):
        for h in range(3):
            for i in range(4):
                for j in range(5):
                    parts = zip(layer.weight[h].tolist(), QUERY[b, h, i].tolist(), KEY[b, h, j].tolist(), strict=True)
                    expected = sum(v * math.tanh(q + k) for v, q, k in parts)
                    assert scores[b, h, i, j].item() == pytest.approx(expected, abs=1e-5)


@given(st.lists(st.lists(st.floats(-50, 50) | st.just(-math.inf), min_size=4, max_size=4), min_size=1, max_size=5))
def test_rows_of_masked_softmax_sum_to_one_or_are_nothing(rows):
    scores = torch.tensor(rows, requires_grad=True)
    weights = masked_softmax(scores)
    some = (scores > -math.inf).any(-1)
    close(weights.sum(-1), some.float())
    assert (weights[scores == -math.inf] == 0).all()
    close(weights[some], scores[some].softmax(-1))


def test_without_hidden_pairs_there_is_nothing_to_look_for():
    scores = torch.randn(2, 3, 4, 5)
    assert torch.equal(masked_softmax(scores, some_hidden=False), masked_softmax(scores))
