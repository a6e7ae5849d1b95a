"""Chances: temperature, then the k likeliest, then the fewest that reach p; and what is cut has none."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close
from transformer_core.generation import chances
from transformer_core.generation.sampling import without

LOGITS = torch.log(torch.tensor([0.5, 0.25, 0.15, 0.1]))


def test_the_published_rules_on_four_words():
    close(chances(LOGITS), torch.tensor([0.5, 0.25, 0.15, 0.1]))
    close(chances(LOGITS, top_k=2), torch.tensor([2 / 3, 1 / 3, 0.0, 0.0]))
    close(chances(LOGITS, top_p=0.7), torch.tensor([2 / 3, 1 / 3, 0.0, 0.0]))
    close(chances(LOGITS, top_p=0.76), torch.tensor([0.5, 0.25, 0.15, 0.0]) / 0.9)
    close(chances(LOGITS, top_k=2, top_p=0.6), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    close(chances(LOGITS, temperature=0.5), torch.tensor([0.25, 0.0625, 0.0225, 0.01]) / 0.345)


@given(st.integers(0, 1000), st.floats(1e-30, 50), st.integers(1, 30), st.floats(1e-6, 1))
def test_they_sum_to_one_and_keep_the_likeliest(seed, temperature, top_k, top_p):
    logits = torch.randn(3, 20, generator=torch.Generator().manual_seed(seed)) * 5
    kept = chances(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    close(kept.sum(-1), torch.ones(3))
    assert bool((kept > 0).sum(-1).le(min(top_k, 20)).all())
    assert torch.equal(kept.argmax(-1), logits.argmax(-1))
    everything = chances(logits, temperature=temperature)
    before = (everything * (kept > 0)).sum(-1)
    fewest = before - everything.masked_fill(kept == 0, 2).amin(-1)
    assert bool((fewest < top_p + 1e-5).all())


@pytest.mark.parametrize("top_p", [1.0, None])
def test_nothing_is_cut_unasked(top_p):
    logits = torch.randn(5, 40)
    close(chances(logits, top_k=40, top_p=top_p), logits.softmax(-1))


def test_ties_leave_exactly_k():
    assert int((chances(torch.zeros(9), top_k=4) > 0).sum()) == 4
    assert int((chances(torch.zeros(10), top_p=0.25) > 0).sum()) == 3


def test_excluded_tokens_have_no_chance_and_the_logits_stay_as_they_were():
    logits = LOGITS.clone()
    close(chances(without(logits, (0, 3))), torch.tensor([0.0, 0.625, 0.375, 0.0]))
    assert torch.equal(logits, LOGITS)
    with pytest.raises(ValueError, match="exclude="):
        without(logits, (4,))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature=0 must be more than 0"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"top_k": 0}, "top_k=0 must be at least 1"),
        ({"top_p": 0.0}, "top_p=0.0 must be more than 0 and at most 1"),
        ({"top_p": 1.5}, "top_p=1.5"),
    ],
)
def test_arguments_out_of_range_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        chances(LOGITS, **options)
