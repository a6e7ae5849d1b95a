"""Kept passes: one pass answers again, and never for other weights, another model, or one that is being trained."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from tests.helpers import ROOT
from transformer_core import kept_passes, load
from transformer_core.analysis.attention.head_ablation import head_effects
from transformer_core.analysis.attention.heads import head_entropies, heads_of_text
from transformer_core.analysis.attention.rollout import attention_flow
from transformer_core.kept_passes import MOST, MOST_BYTES, MOST_BYTES_OF_ONE, kept_pass

ASKED = {"text": "The film was not good.", "n_tokens": 16}


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
        kept_pass(ours, place, Counted())
    assert len(kept_passes._kept) == MOST


def test_a_kept_pass_keeps_no_model():
    ours = model()
    kept_pass(ours, "a", Counted())
    gone = weakref.ref(ours)
    del ours
    gc.collect()
    assert gone() is None


def test_questions_about_one_text_make_one_pass_and_leave_it_as_it_was(monkeypatch: pytest.MonkeyPatch):
    bundle = load(ROOT / "assets" / "checkpoints" / "sentiment")
    passes = []
    forward = type(bundle.model).forward
    monkeypatch.setattr(type(bundle.model), "forward", lambda *args, **kw: passes.append(1) or forward(*args, **kw))
    first = heads_of_text(bundle=bundle, **ASKED, layer=1, head=2)
    entropies = head_entropies(bundle=bundle, **ASKED)
    attention_flow(bundle=bundle, **ASKED)
    assert len(passes) == 1
    effects = head_effects(bundle=bundle, **ASKED)
    assert len(passes) == 1 + bundle.config.n_layers  # each goes on from the kept pass
    again = heads_of_text(bundle=bundle, **ASKED, layer=1, head=2)
    kept_passes._kept.clear()
    anew = heads_of_text(bundle=bundle, **ASKED, layer=1, head=2)
    for name, values in vars(first.steps).items():
        np.testing.assert_array_equal(values, getattr(again.steps, name))
        np.testing.assert_array_equal(values, getattr(anew.steps, name))
    np.testing.assert_array_equal(entropies.heads, head_entropies(bundle=bundle, **ASKED).heads)
    np.testing.assert_array_equal(effects.change, head_effects(bundle=bundle, **ASKED).change)
