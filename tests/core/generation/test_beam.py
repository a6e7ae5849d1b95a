"""Beam search: width 1 is greedy, every score is the model's own, and an exhaustive search is never beaten."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.engine import close, made
from transformer_core.generation import beam_search, best_of, exhaustive_search, greedy, greedy_words, ranked
from transformer_core.models import Gpt, Translation

ENDS: Any = {"bos_id": 1, "eos_id": 2}
SOURCE = torch.tensor([[1, 5, 6, 7, 2]])
alphas = st.sampled_from([0.0, 0.6, 1.0, 3.0])


def log_prob_of(model, source: torch.Tensor, ids: tuple[int, ...]) -> float:
    """Ask the model for a whole target at once, without a cache."""
    logits = model(source, torch.tensor([[1, *ids[:-1]]]))[0].detach().double()
    return float(logits.log_softmax(-1)[range(len(ids)), list(ids)].sum())


@given(st.integers(0, 10_000), st.integers(1, 11), alphas)
@settings(max_examples=15)
def test_a_beam_of_one_is_greedy(seed, most, alpha):
    model = made(Translation, seed)
    greedily = tuple(step.token_id for step in greedy(model, SOURCE, most=most, **ENDS))
    steps = list(beam_search(model, SOURCE, width=1, most=most, length_penalty=alpha, **ENDS))
    assert best_of(steps).token_ids == greedily
    assert len(steps) == len(greedily)


@given(st.integers(0, 10_000), st.integers(1, 6), alphas)
@settings(max_examples=15)
def test_no_beam_beats_an_exhaustive_search(seed, width, alpha):
    model = made(Translation, seed, vocab_size=6, n_layers=1)
    source = torch.tensor([[1, 4, 5, 2]])
    best = best_of(exhaustive_search(model, source, most=4, length_penalty=alpha, **ENDS))
    found = best_of(beam_search(model, source, width=width, most=4, length_penalty=alpha, **ENDS))
    assert found.score <= best.score + 1e-6
    assert math.isclose(found.log_prob, log_prob_of(model, source, found.token_ids), abs_tol=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_an_exhaustive_search_weighs_every_target_there_is(alpha):
    model, words = made(Translation, vocab_size=5, n_layers=1), (0, 1, 3, 4)
    source = torch.tensor([[1, 4, 3, 2]])
    *_, last = exhaustive_search(model, source, most=3, length_penalty=alpha, **ENDS)
    every = {(*ids, 2) for length in range(3) for ids in itertools.product(words, repeat=length)}
    every |= set(itertools.product(words, repeat=3))
    found = ranked(last)
    assert {hypothesis.token_ids for hypothesis in found} == every
    assert len(found) == len(every)
    for hypothesis in found:
        log_prob = log_prob_of(model, source, hypothesis.token_ids)
        assert math.isclose(hypothesis.log_prob, log_prob, abs_tol=1e-4)
        assert math.isclose(hypothesis.score, log_prob / ((5 + len(hypothesis.token_ids)) / 6) ** alpha, abs_tol=1e-4)
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    chances = torch.tensor([hypothesis.log_prob for hypothesis in found]).exp().sum()
    close(chances, torch.tensor(1.0), atol=1e-4)


def test_too_many_targets_are_refused():
    with pytest.raises(ValueError, match=r"most=6 tokens of 12 words make 3,257,437 hypotheses; at most 50,000"):
        exhaustive_search(made(Translation), SOURCE, most=6, **ENDS)
    exhaustive_search(made(Translation), SOURCE, most=6, exclude=tuple(range(3, 11)), **ENDS)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=15)
def test_steps_make_a_tree(seed, width):
    model, before, finished = made(Translation, seed), (), ()
    for number, step in enumerate(beam_search(model, SOURCE, width=width, most=6, **ENDS)):
        assert len(step.considered) == 2 * width
        assert [h.log_prob for h in step.considered] == sorted((h.log_prob for h in step.considered), reverse=True)
        assert set(finished) <= set(step.finished)
        assert all(h.token_ids[-1] == 2 and h.finished for h in step.finished)
        assert tuple(h for h in step.considered if h.alive) == step.kept
        assert len(step.kept) == (0 if len(step.finished) >= width else width)
        for hypothesis in step.considered:
            assert (hypothesis.parent is None) == (number == 0)
            if hypothesis.parent is not None:
                assert before[hypothesis.parent].token_ids == hypothesis.token_ids[:-1]
                assert before[hypothesis.parent].log_prob >= hypothesis.log_prob
        before, finished = step.kept, step.finished
    assert len(before) == 0 or number == 5


def test_a_person_can_stop_and_nothing_is_excluded_unasked():
    model = made(Translation)
    steps = beam_search(model, SOURCE, width=3, most=10, **ENDS)
    assert len(best_of([next(steps), next(steps)]).token_ids) in (1, 2)
    steps.close()
    first = next(beam_search(model, SOURCE, width=7, most=1, **ENDS)).considered
    assert {h.token_ids[0] for h in first} == set(range(13))
    kept = {
        h.token_ids[0] for h in next(beam_search(model, SOURCE, width=9, most=1, exclude=(0, 1), **ENDS)).considered
    }
    assert kept == set(range(2, 13))


def test_a_gpt_can_be_searched_after_its_beginning():
    gpt, beginning = made(Gpt), torch.tensor([[3, 4, 5]])
    greedily = tuple(step.token_id for step in greedy_words(gpt, beginning, most=6))
    found = best_of(beam_search(gpt, beginning[:, :-1], width=1, bos_id=5, eos_id=2, most=6))
    assert found.token_ids == greedily[: len(found.token_ids)]
    assert len(found.token_ids) == 6 or found.token_ids[-1] == 2


@pytest.mark.parametrize(
    ("options", "message"), [({"width": 0}, "width=0"), ({"length_penalty": -1}, "length_penalty=-1")]
)
def test_arguments_out_of_range_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        next(beam_search(made(Translation), SOURCE, most=3, **({"width": 2} | ENDS | options)))
