"""Gradients by depth, and a deep stack trained with residuals and without."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers.engine import exactly
from transformer_core.analysis.stream.depth import (
    NORMS,
    DepthProfile,
    deep_training,
    gradients_by_depth,
    untrained_stack,
)


def by_kind(n_layers: int, seed: int = 0) -> dict[tuple[str, bool], DepthProfile]:
    """Return the six profiles by norm and residual."""
    found = gradients_by_depth(n_layers=n_layers, d_model=16, seed=seed)
    return {(profile.norm, profile.residual): profile for profile in found.profiles}


def test_there_are_six_stacks_with_one_value_a_layer() -> None:
    found = by_kind(5)
    assert set(found) == {(norm, residual) for norm in NORMS for residual in (True, False)}
    for profile in found.values():
        assert len(profile.input_gradients) == len(profile.activations) == len(profile.apart) == 6
        assert len(profile.parameter_gradients) == 5
        assert np.isfinite(profile.input_gradients).all()
        assert profile.activations[0] == next(iter(found.values())).activations[0]


def test_the_same_seed_starts_every_stack_with_the_same_weights() -> None:
    stacks = [untrained_stack(3, 16, 7, order, residual) for order in ("pre", "post") for residual in (True, False)]
    first = dict(stacks[0].named_parameters())
    for stack in stacks[1:]:
        for name, parameter in stack.named_parameters():
            torch.testing.assert_close(parameter, first[name])


@pytest.mark.parametrize(("norm", "residual"), [("pre", True), ("post", True), ("pre", False)])
def test_the_gradient_is_the_one_that_the_whole_stack_gives(norm: str, residual: bool) -> None:
    stack = untrained_stack(4, 16, 3, "post" if norm == "post" else "pre", residual).double()
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(4, 12, 16, generator=generator).double().requires_grad_(True)
    readout = torch.randn(16, 4, generator=generator).double() / 4
    classes = torch.randint(0, 4, (4,), generator=generator)
    loss = F.cross_entropy(stack(x)[:, 0] @ readout, classes)
    loss.backward()
    profile = by_kind(4, seed=3)[norm, residual]
    assert x.grad is not None
    assert profile.loss == pytest.approx(float(loss.detach()))
    assert profile.input_gradients[0] == pytest.approx(float(x.grad.norm()))
    last = torch.cat([parameter.grad.flatten() for parameter in stack.layers[3].parameters()])
    assert profile.parameter_gradients[3] == pytest.approx(float(last.norm()))


def test_without_norms_the_gradient_vanishes_or_explodes_with_depth() -> None:
    shallow, deep = by_kind(4), by_kind(24)
    assert deep["none", False].first_over_last < 1e-3 * shallow["none", False].first_over_last
    assert deep["none", True].first_over_last > 1e3


def test_without_residuals_the_positions_become_one() -> None:
    found = by_kind(16)
    for norm in NORMS:
        assert found[norm, False].apart[-1] < 1e-12
    assert found["pre", True].apart[-1] > 1e-2


def test_a_stack_that_is_too_deep_is_refused() -> None:
    with pytest.raises(ValueError, match=exactly("n_layers=49 must be from 2 to 48")):
        gradients_by_depth(n_layers=49, d_model=32, seed=0)
    with pytest.raises(ValueError, match=exactly("d_model=36 must be a multiple of 8 from 16 to 64")):
        gradients_by_depth(n_layers=4, d_model=36, seed=0)
    with pytest.raises(ValueError, match=exactly("n_layers=25 must be from 2 to 24")):
        deep_training(n_layers=25, norm_order="pre", seed=0)


def test_residuals_learn_what_the_same_stack_without_them_does_not() -> None:
    found = deep_training(n_layers=4, norm_order="pre", seed=0)
    assert found.guessing == pytest.approx(math.log(8))
    assert found.right_with > 0.95
    assert found.right_with > found.right_without + 0.3
    assert found.with_residuals[-1] < found.without_residuals[-1]
