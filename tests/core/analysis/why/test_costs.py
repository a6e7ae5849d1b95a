"""Scores by two rules, the cost of attention, the reach of gradients, and gates."""

import numpy as np
import pytest
import torch

from transformer_core.analysis.stream import depth
from transformer_core.analysis.stream.depth import reach_by_depth
from transformer_core.analysis.why.cost import time_attention
from transformer_core.analysis.why.gates import gates, own_gates
from transformer_core.analysis.why.scorings import spread_of_scorings, time_scorings
from transformer_core.bundle import Bundle


def test_both_scorings_spread_with_the_root_of_the_width() -> None:
    found = spread_of_scorings(seed=0)
    assert found.dot_product_slope == pytest.approx(0.5, abs=0.05)
    assert found.additive_slope == pytest.approx(0.5, abs=0.08)
    np.testing.assert_allclose(found.divided, 1.0, atol=0.1)
    np.testing.assert_allclose(found.additive_divided, found.additive / found.widths**0.5)


def test_additive_scores_take_longer() -> None:
    found = time_scorings(n_tokens=16, seed=0, measurement=0)
    assert found.ratio > 1
    assert found.ratio == pytest.approx(found.additive[-1] / found.dot_product[-1])
    assert found.floats == 16 * 16 * 512


def test_cost_is_held_against_its_counts() -> None:
    found = time_attention(along="length", other=32, seed=0, measurement=0)
    assert found.attention_count.tolist() == [2 * n * n * 32 for n in found.sizes.tolist()]
    assert found.attention_count_slope == pytest.approx(2.0)
    assert 1 < found.layer_count_slope < 2
    assert found.attention_slope > 1
    for step in (found.scores, found.softmax, found.mixture):
        assert step.shape == found.sizes.shape
        assert (step > 0).all()
    assert found.softmax_slope > 1
    linear = 12 * found.even * 32**2
    assert 2 * found.even**2 * 32 == pytest.approx(linear)
    with pytest.raises(ValueError, match="along='depth' must be 'length' or 'width'"):
        time_attention(along="depth", other=32, seed=0, measurement=0)


def test_bare_stacks_lose_the_gradient_and_normalised_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "DEPTHS", (2, 24))
    found = reach_by_depth(seed=0)
    pre, bare = found.norms.index("pre"), found.norms.index("none")
    assert found.without_residuals[bare, -1] < 1e-6
    assert found.without_residuals[pre, -1] > 0.5
    assert found.with_residuals.shape == (len(found.norms), len(found.depths))


def test_the_mean_of_many_tosses_is_gelu() -> None:
    few, many = gates(draws=4, seed=0), gates(draws=4096, seed=0)
    assert many.error < 0.12 < few.error
    np.testing.assert_allclose(many.relu, many.x * many.relu_gate)
    np.testing.assert_allclose(many.gelu, many.x * many.gelu_gate, atol=1e-12)
    assert many.at_one == pytest.approx(float(torch.nn.functional.gelu(torch.tensor(1.0))), abs=1e-6)
    assert many.at_one + many.slip_at_one == pytest.approx(1.0)
    with pytest.raises(ValueError, match="draws=0 must be from 1"):
        gates(draws=0, seed=0)


def test_relu_is_silent_where_the_pre_activation_is_negative(bundle: Bundle) -> None:
    found = own_gates(bundle=bundle, text="a glass box", n_tokens=12)
    assert ((found.silent_relu > 0) & (found.silent_relu < 1)).all()
    assert (found.silent_gelu < found.silent_relu).all()
