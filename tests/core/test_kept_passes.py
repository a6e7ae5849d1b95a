"""Kept passes, packed weights and progress: quicker, and the same numbers."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers import ROOT
from tests.helpers.engine import (
    close,
    made,
    padded_ids,
    shipped,
    small_weights_packed,
)
from transformer_core import kept_passes
from transformer_core.analysis.attention.head_ablation import head_effects
from transformer_core.analysis.attention.heads import head_entropies, heads_of_text
from transformer_core.analysis.attention.rollout import attention_flow
from transformer_core.kept_passes import MOST, MOST_BYTES, MOST_BYTES_OF_ONE, kept_pass
from transformer_core.models import Gpt
from transformer_core.packed_linear import Linear
from transformer_core.progress import counted, listening
from transformer_core.prompt import Prompt


@dataclass(frozen=True)
class Made:
    number: int
    nbytes: int = 8


class Counted:
    """Makes passes, and knows how many."""

    def __init__(self, nbytes: int = 8) -> None:
        self.made, self.nbytes = 0, nbytes

    def __call__(self) -> Made:
        self.made += 1
        return Made(self.made, self.nbytes)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    kept_passes._kept.clear()
    yield
    kept_passes._kept.clear()


def model() -> nn.Linear:
    return nn.Linear(2, 2).eval()


def test_the_same_question_is_answered_by_one_pass():
    ours, make = model(), Counted()
    assert kept_pass(ours, "a", make) is kept_pass(ours, "a", make)
    assert kept_pass(ours, "b", make) != kept_pass(ours, "a", make)
    assert kept_pass(model(), "a", make).number == 3


def test_other_weights_are_another_pass():
    ours, make = model(), Counted()
    kept_pass(ours, "a", make)
    with torch.no_grad():
        ours.weight.mul_(2)
    assert kept_pass(ours, "a", make).number == 2
    ours.weight = nn.Parameter(torch.zeros(2, 2))
    assert kept_pass(ours, "a", make).number == 3
    ours(torch.ones(1, 2)).sum().backward()
    torch.optim.AdamW(ours.parameters(), fused=True).step()
    assert kept_pass(ours, "a", make).number == 4
    other = copy.deepcopy(ours)
    other(torch.ones(1, 2)).sum().backward()
    torch.optim.AdamW(other.parameters(), fused=True).step()  # of others' weights, as One step does at every key
    assert kept_pass(ours, "a", make).number == 4


def test_new_weights_that_lie_where_old_ones_lay_are_another_pass():
    ours, make = nn.Linear(600, 600).eval(), Counted()  # so large that memory is taken again
    for number in range(1, 13):
        ours.weight = nn.Parameter(torch.full((600, 600), float(number)))
        assert kept_pass(ours, "a", make).number == number


def test_nothing_is_kept_of_a_model_that_is_being_trained():
    make = Counted()
    assert [kept_pass(model().train(), "a", make).number for _ in range(3)] == [1, 2, 3]


def test_large_passes_are_not_kept_and_old_ones_are_forgotten():
    ours, large, half = model(), Counted(MOST_BYTES_OF_ONE + 1), Counted(MOST_BYTES_OF_ONE)
    assert [kept_pass(ours, "large", large).number for _ in range(2)] == [1, 2]
    room = MOST_BYTES // MOST_BYTES_OF_ONE
    for place in range(room + 1):
        kept_pass(ours, place, half)
    assert len(kept_passes._kept) == room
    assert kept_pass(ours, room, half).number == room + 1
    assert kept_pass(ours, 0, half).number == room + 2
    for place in range(MOST + 1):
        kept_pass(ours, f"small {place}", Counted())
    assert len(kept_passes._kept) == MOST


def test_a_kept_pass_keeps_no_model():
    ours = model()
    kept_pass(ours, "a", Counted())
    gone = weakref.ref(ours)
    del ours
    gc.collect()
    assert gone() is None


def test_questions_about_one_text_make_one_pass_and_leave_it_as_it_was(monkeypatch: pytest.MonkeyPatch):
    bundle = shipped("sentiment")
    prompt = Prompt(bundle, "The film was not good.", 16)
    passes = []
    forward = type(bundle.model).forward
    monkeypatch.setattr(type(bundle.model), "forward", lambda *args, **kw: passes.append(1) or forward(*args, **kw))
    first = heads_of_text(prompt=prompt, layer=1, head=2)
    entropies = head_entropies(prompt=prompt)
    attention_flow(prompt=prompt)
    assert len(passes) == 1
    effects = head_effects(prompt=prompt)
    assert len(passes) == 1 + bundle.config.n_layers  # each goes on from the kept pass
    again = heads_of_text(prompt=prompt, layer=1, head=2)
    kept_passes._kept.clear()
    anew = heads_of_text(prompt=prompt, layer=1, head=2)
    for name, values in vars(first.steps).items():
        np.testing.assert_array_equal(values, getattr(again.steps, name))
        np.testing.assert_array_equal(values, getattr(anew.steps, name))
    np.testing.assert_array_equal(entropies.heads, head_entropies(prompt=prompt).heads)
    np.testing.assert_array_equal(effects.change, head_effects(prompt=prompt).change)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.05),
    "foreach": lambda p: torch.optim.AdamW(p, lr=0.05, foreach=True),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.05, fused=True),
}


ROWS = """
import resource
import torch
from transformer_core.prompt import Prompt
from transformer_core.packed_linear import Linear

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

layer = Linear(768, 768)
with torch.inference_mode():
    for rows in range(1, 300):
        layer(torch.ones(rows, 768))
        if rows == 40:
            before = used()
print(used() - before)
"""


@pytest.mark.nightly
def test_texts_of_many_lengths_take_no_more_memory_than_of_a_few():
    grown = subprocess.run([sys.executable, "-c", ROWS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert int(grown) < 60, "MB"


@torch.inference_mode()
def packed_result(layer: Linear, x: torch.Tensor) -> torch.Tensor:
    with small_weights_packed():
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


def test_keeps_its_copy_while_others_learn():
    layer, other, x = Linear(6, 4), Linear(6, 4), torch.randn(3, 6)
    packed_result(layer, x)
    packed = layer._packed
    other(x).sum().backward()
    torch.optim.AdamW(other.parameters(), fused=True).step()
    packed_result(layer, x)
    assert layer._packed is packed


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
    with torch.inference_mode(), small_weights_packed():
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


def test_a_loop_inside_a_loop_is_a_part_of_its_item() -> None:
    told: list[float] = []
    with listening(lambda done, total: told.append(done / total)):
        for _ in counted("ab"):
            for _ in counted(iter(range(4)), 4):
                pass
        for _ in counted([1, 2]):
            pass
    assert told == [0, 0, 1 / 8, 2 / 8, 3 / 8, 1 / 2, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 0, 1 / 2]


def test_who_does_not_listen_is_told_nothing_and_a_loop_left_early_leaves_nothing_behind() -> None:
    told: list[int] = []
    with listening(lambda done, _: told.append(done)):
        for item in counted([5, 6, 7]):
            if item == 6:
                break
    assert list(counted([1, 2])) == [1, 2]
    assert told == [0, 1]
    with listening(lambda done, _: told.append(done)):
        assert list(counted([1, 2])) == [1, 2]
    assert told == [0, 1, 0, 1]
