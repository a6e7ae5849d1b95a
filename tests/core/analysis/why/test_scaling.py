"""The variance law, the softmax's derivative, and the spread in a model's own heads."""

import numpy as np
import pytest
import torch

from tests.core.analysis.why.conftest import TEXT
from transformer_core.analysis.attention.heads import head_entropies
from transformer_core.analysis.why.scaling import N_KEYS, jacobian_norm, spread_by_width, spread_of_own_heads
from transformer_core.analysis.why.sentence_attention import sentence_attention
from transformer_core.bundle import Bundle
from transformer_core.models import Gpt


def test_the_variance_of_products_is_the_width() -> None:
    found = spread_by_width(seed=0)
    np.testing.assert_allclose(found.variance, found.widths, rtol=0.1)
    np.testing.assert_allclose(found.variance_divided, found.variance / found.widths, rtol=1e-4)
    assert found.slope == pytest.approx(1.0, abs=0.03)


def test_without_the_division_one_key_takes_it_all() -> None:
    found = spread_by_width(seed=1)
    assert found.greatest[-1] > 0.9 > 0.5 > found.greatest_divided[-1]
    assert (np.diff(found.entropy) < 0).all()
    assert found.gradient[-1] < 0.5 * found.gradient_divided[-1]
    assert (found.entropy_divided <= np.log(N_KEYS)).all()
    np.testing.assert_allclose(found.weights.sum(-1), 1.0, atol=1e-9)
    np.testing.assert_allclose(found.weights[0], found.weights_divided[0], atol=1e-6)


def test_the_norm_is_that_of_the_jacobian() -> None:
    scores = torch.randn(6, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: x.softmax(-1), scores)
    assert isinstance(jacobian, torch.Tensor)
    torch.testing.assert_close(jacobian_norm(scores.softmax(-1)), torch.linalg.matrix_norm(jacobian))


def test_own_heads_agree_with_the_model(bundle: Bundle) -> None:
    found = spread_of_own_heads(bundle=bundle, text=TEXT, n_tokens=12)
    assert found.layers.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found.variance_divided, found.variance / found.d_head, rtol=1e-4)
    expected = head_entropies(bundle=bundle, text=TEXT, n_tokens=12)
    np.testing.assert_allclose(found.entropy.reshape(2, 2), expected.heads, atol=1e-5)
    assert found.largest_entropy == pytest.approx(expected.greatest)


def test_padding_is_left_out(bundle: Bundle) -> None:
    sight = sentence_attention(bundle, "a box [PAD]", 12)
    hidden = [label == "[PAD]" for label in sight.labels]
    assert sight.layers[0].allowed.logical_not().any(0).tolist() == hidden
    scores = sight.layers[1].scores
    torch.testing.assert_close(sight.layers[1].weights_of(scores), sight.layers[1].weights)


def test_models_that_cannot_answer_are_named(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="must be a classifier"):
        sentence_attention(Bundle("other", Gpt(bundle.config), bundle.tokenizer), TEXT, 12)
    with pytest.raises(ValueError, match=r"layer=7 must be from 0 to 1"):
        sentence_attention(bundle, TEXT, 12).layer(7)
