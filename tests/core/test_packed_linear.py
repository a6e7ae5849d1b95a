"""A linear map is F.linear, packed or not, whatever happened to its weight since it was packed."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close, made, padded_ids
from transformer_core.models import Gpt
from transformer_core.packed_linear import Linear

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.05),
    "foreach": lambda p: torch.optim.AdamW(p, lr=0.05, foreach=True),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.05, fused=True),
}


@torch.inference_mode()
def packed_result(layer: Linear, x: torch.Tensor) -> torch.Tensor:
    return layer(x).clone()


def follows(layer: Linear, x: torch.Tensor) -> None:
    """Assert that the quick path gives what the weight of this moment gives."""
    close(packed_result(layer, x), F.linear(x, layer.weight, layer.bias).detach())


@given(st.integers(1, 40), st.integers(1, 40), st.lists(st.integers(0, 5), max_size=3), st.booleans())
def test_packed_is_f_linear_for_every_shape(inputs, outputs, leading, bias):
    layer = Linear(inputs, outputs, bias=bias)
    x = torch.randn(*leading, inputs)
    assert packed_result(layer, x).shape == (*leading, outputs)
    follows(layer, x)


def test_views_that_are_not_contiguous():
    layer = Linear(6, 4)
    for x in (torch.randn(6, 9).T, torch.randn(1, 6).expand(5, 6), torch.randn(3, 12)[:, ::2]):
        follows(layer, x)


def test_no_rows():
    assert packed_result(Linear(6, 4), torch.empty(0, 6)).shape == (0, 4)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_follows_an_optimizer(optimizer):
    layer, x = Linear(6, 4), torch.randn(3, 6)
    before = packed_result(layer, x)
    steps = optimizer(layer.parameters())
    for _ in range(2):
        layer(x).square().sum().backward()
        steps.step()
        follows(layer, x)
    assert not torch.allclose(packed_result(layer, x), before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_follows_an_edit_in_place(mode):
    layer, x = Linear(6, 4), torch.randn(3, 6)
    packed_result(layer, x)
    with mode():
        layer.weight[1, 2] = 7.0
    follows(layer, x)


def test_follows_load_state_dict_and_a_new_parameter():
    layer, x = Linear(6, 4), torch.randn(3, 6)
    packed_result(layer, x)
    layer.load_state_dict(Linear(6, 4).state_dict())
    follows(layer, x)
    for _ in range(20):  # memory and identity of a freed weight are used again
        layer.weight = torch.nn.Parameter(torch.randn(4, 6))
        packed_result(layer, x)
        layer.weight = torch.nn.Parameter(torch.randn(4, 6))
        layer.weight = torch.nn.Parameter(torch.randn(4, 6))
        follows(layer, x)


def test_follows_a_change_of_dtype_and_back():
    layer, x = Linear(6, 4), torch.randn(3, 6)
    packed_result(layer, x)
    layer.to(torch.float64)
    follows(layer, x.double())
    with torch.no_grad():
        layer.weight.mul_(2)
    layer.to(torch.float32)
    follows(layer, x)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_leaves_the_original_behind(duplicate):
    layer, x = Linear(6, 4), torch.randn(3, 6)
    before = packed_result(layer, x)
    twin = duplicate(layer)
    with torch.no_grad():
        twin.weight.add_(1.0)
    follows(twin, x)
    assert torch.equal(packed_result(layer, x), before)


def test_a_model_that_has_packed_can_be_copied_and_pickled():
    model, ids = made(Gpt), padded_ids(2, 5)
    with torch.inference_mode():
        before = model(ids)
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            close(twin(ids), before)
            assert twin.output.proj.weight is twin.decoder.embedding.token.weight


def test_gradients_are_those_of_f_linear():
    layer, x = Linear(6, 4), torch.randn(3, 6, requires_grad=True)
    packed_result(layer, x.detach())
    grads = torch.autograd.grad(layer(x).square().sum(), [x, layer.weight, layer.bias])
    expected = torch.autograd.grad(F.linear(x, layer.weight, layer.bias).square().sum(), [x, layer.weight, layer.bias])
    for ours, theirs in zip(grads, expected, strict=True):
        close(ours, theirs)


def test_forward_derivatives_do_not_vanish_under_no_grad():
    layer, x = Linear(6, 4), torch.randn(3, 6)
    with torch.no_grad():
        _, derivative = torch.func.jvp(layer, (x,), (x,))
    close(derivative, F.linear(x, layer.weight).detach())


def test_the_packed_copy_is_no_part_of_the_state():
    layer = Linear(6, 4)
    packed_result(layer, torch.randn(3, 6))
    assert set(layer.state_dict()) == {"weight", "bias"}
