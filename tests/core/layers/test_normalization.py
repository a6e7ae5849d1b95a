"""Normalisations are their formulas."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers.engine import close, exactly, lively
from transformer_core.layers.normalization import LayerNorm, UnbiasedNorm, make_norm
from transformer_core.probe import Probe


@given(st.integers(2, 40), st.floats(1e-8, 0.1), st.floats(-100, 100), st.floats(0.01, 100))
def test_layer_norm_is_torchs(d_model, eps, centre, spread):
    ours, theirs = lively(LayerNorm(d_model, eps=eps)), nn.LayerNorm(d_model, eps=eps)
    theirs.load_state_dict(ours.state_dict())
    x = centre + spread * torch.randn(2, 3, d_model)
    close(ours(x), theirs(x))


@given(st.integers(2, 40), st.floats(1e-8, 0.1))
def test_unbiased_norm_is_its_formula(d_model, eps):
    norm = lively(UnbiasedNorm(d_model, eps=eps))
    x = torch.randn(2, 3, d_model)
    mean = x.sum(-1, keepdim=True) / d_model
    deviation = ((x - mean).square().sum(-1, keepdim=True) / (d_model - 1)).sqrt()
    close(norm(x), norm.weight * (x - mean) / (deviation + eps) + norm.bias, atol=1e-4)


@pytest.mark.parametrize("kind", [LayerNorm, UnbiasedNorm])
def test_recorded_parts_make_up_the_result(kind):
    norm, x, probe = lively(kind(16)), torch.randn(2, 3, 16), Probe()
    result = norm(x, probe=probe)
    trace = probe.trace
    assert trace["mean"].shape == trace["inverse_deviation"].shape == (2, 3, 1)
    close((x - trace["mean"]) * trace["inverse_deviation"] * norm.weight + norm.bias, result)
    assert torch.equal(trace["normalized"], result)


@pytest.mark.parametrize("kind", [LayerNorm, UnbiasedNorm])
def test_edited_parts_are_used(kind):
    norm, x = lively(kind(16)), torch.randn(2, 3, 16)
    deviation = Probe(("inverse_deviation",))
    norm(x, probe=deviation)
    inverse = deviation.trace["inverse_deviation"]
    close(norm(x, probe=Probe(edits={"mean": torch.zeros_like})), x * inverse * norm.weight + norm.bias)
    halved = norm(x, probe=Probe(edits={"inverse_deviation": lambda tensor: tensor / 2}))
    close(halved - norm.bias, (norm(x) - norm.bias) / 2)


@pytest.mark.parametrize("kind", [LayerNorm, UnbiasedNorm])
def test_a_constant_row_is_finite_with_finite_gradients(kind):
    norm, x = kind(16), torch.ones(1, 2, 16, requires_grad=True)
    norm(x).sum().backward()
    close(norm(x), torch.zeros(1, 2, 16))
    assert x.grad.isfinite().all()


def test_an_unknown_norm_is_named():
    message = "norm='batch_norm' is unknown; it must be one of 'layer_norm', 'unbiased'"
    with pytest.raises(ValueError, match=exactly(message)):
        make_norm("batch_norm", 8, eps=1e-5)
