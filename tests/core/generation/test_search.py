"""Searching and drafting: beams, drafts and batches change how it is computed, never what is written."""

import itertools
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.core.models.test_properties import POSITIONS
from tests.helpers import nightly_but
from tests.helpers.engine import close, made
from transformer_core.bundle import Bundle
from transformer_core.generation import (
    SpeculativePass,
    beam_search,
    best_of,
    exhaustive_search,
    greedy,
    greedy_from_drafts,
    greedy_words,
    ranked,
    translate,
)
from transformer_core.models import Gpt, Translation
from transformer_core.text import Tokenizer

ENDS: Any = {"bos_id": 1, "eos_id": 2}
SOURCE = torch.tensor([[1, 5, 6, 7, 2]])
alphas = st.sampled_from([0.0, 0.6, 1.0, 3.0])


def log_prob_of(model, source: torch.Tensor, ids: tuple[int, ...]) -> float:
    """Ask the model for a whole target at once, without a cache."""
    logits = model(source, torch.tensor([[1, *ids[:-1]]]))[0].detach().double()
    return float(logits.log_softmax(-1)[range(len(ids)), list(ids)].sum())


@given(st.integers(0, 10_000), st.integers(1, 11), alphas)
def test_a_beam_of_one_is_greedy(seed, most, alpha):
    model = made(Translation, seed)
    greedily = tuple(step.token_id for step in greedy(model, SOURCE, most=most, **ENDS))
    steps = list(beam_search(model, SOURCE, width=1, most=most, length_penalty=alpha, **ENDS))
    assert best_of(steps).token_ids == greedily
    assert len(steps) == len(greedily)


@given(st.integers(0, 10_000), st.integers(1, 6), alphas)
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
    probabilities = torch.tensor([hypothesis.log_prob for hypothesis in found]).exp().sum()
    close(probabilities, torch.tensor(1.0), atol=1e-4)


def test_too_many_targets_are_refused():
    with pytest.raises(ValueError, match=r"most=6 tokens of 12 words make 3,257,437 hypotheses; at most 50,000"):
        exhaustive_search(made(Translation), SOURCE, most=6, **ENDS)
    exhaustive_search(made(Translation), SOURCE, most=6, exclude=tuple(range(3, 11)), **ENDS)


@given(st.integers(0, 10_000), st.integers(1, 5))
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


TEXTS = ["a dog runs", "two men", "a man and a dog run", "", "dog", "men and two dogs and a man run and run"] * 14


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    tokenizer = Tokenizer.train("word", TEXTS, vocab_size=40, min_frequency=1, template="bos_eos")
    return Bundle("tiny", made(Translation, seed=4, vocab_size=tokenizer.vocab_size, max_len=14), tokenizer)


@pytest.mark.parametrize(("width", "alpha", "most"), [(1, 0.6, None), (3, 0.6, None), (4, 0.0, 5), (2, 2.0, 8)])
def test_each_sentence_comes_out_as_alone(bundle, width, alpha, most):
    together = translate(bundle, TEXTS, width=width, length_penalty=alpha, most=most)
    ends: Any = {"bos_id": bundle.tokenizer.bos_id, "eos_id": bundle.tokenizer.eos_id}
    for text, translation in list(zip(TEXTS, together, strict=True))[:6]:
        source = torch.tensor([bundle.tokenizer.encode(text, max_len=14).ids])
        steps = beam_search(bundle.model, source, width=width, length_penalty=alpha, most=most or 13, **ends)
        assert translation == bundle.tokenizer.decode(best_of(steps).token_ids)
        if width == 1:
            steps = greedy(bundle.model, source, most=most or 13, **ends)
            assert translation == bundle.tokenizer.decode([step.token_id for step in steps])
    assert together[:6] * 14 == together
    options: Any = {"width": width, "length_penalty": alpha, "most": most}
    assert together[:6] == translate(bundle, TEXTS[:6], batch_size=2, **options)


def test_nothing_gives_nothing(bundle):
    assert translate(bundle, []) == []


def test_other_kinds_are_refused(bundle):
    with pytest.raises(ValueError, match="is a gpt; it must be one of translation, seq2seq"):
        translate(Bundle("g", made(Gpt, vocab_size=40), bundle.tokenizer), ["a"])
    with pytest.raises(ValueError, match="width=0 must be at least 1"):
        translate(bundle, ["a"], width=0)


DRAFTED = {"bos_id": 1, "eos_id": 2, "most": 9}


def plainly(model: Translation) -> tuple[list[int], torch.Tensor]:
    steps = list(greedy(model, SOURCE, **DRAFTED))
    return [step.token_id for step in steps], torch.stack([step.logits for step in steps])


def drafted(model: Translation, *drafts: list[int]) -> tuple[list[int], torch.Tensor]:
    with torch.inference_mode():
        state = model.start(SOURCE)
    passes = list(greedy_from_drafts(model, state, drafts, **DRAFTED))
    return words_of(passes), torch.cat([one.logits for one in passes])


def words_of(passes: list[SpeculativePass]) -> list[int]:
    return [token_id for one in passes for token_id in one.token_ids]


@pytest.mark.parametrize(
    ("positions", "causal"),
    nightly_but(
        itertools.product(POSITIONS, (True, False)), [(POSITIONS[0], True), ("rotary", True), ("rotary", False)]
    ),
)
def test_any_draft_gives_what_none_gives(positions, causal):
    model = made(Translation, positions=positions, causal=causal)
    written, logits = plainly(model)
    swapped = [*written[:2], (written[2] + 1) % 12, *written[3:]]
    for draft in ([], written, written[:3], swapped, written[1:], [*written, *written], [0] * 20):
        for drafts in ([draft], [draft, written], [[3, 4], draft]):
            token_ids, scores = drafted(model, *drafts)
            assert token_ids == written
            close(scores, logits)


@given(st.lists(st.integers(0, 11), max_size=14))
def test_not_even_a_draft_at_random(draft):
    model = made(Translation)
    assert drafted(model, draft)[0] == plainly(model)[0]


@dataclass(frozen=True)
class Place:
    """The state of a model that has its words by heart: how many it has read."""

    length: int
    memory: torch.Tensor

    def truncated(self, length: int) -> "Place":
        return Place(length, self.memory)


class ByHeart:
    """Writes the same words whatever comes, and counts the passes."""

    def __init__(self, *words: int) -> None:
        self.words, self.passes = words, []
        self.config = SimpleNamespace(max_len=40, causal=True)

    def read(self, token_ids: torch.Tensor, state: Place, *, probe: object) -> tuple[torch.Tensor, Place]:
        count = token_ids.shape[1]
        self.passes.append(count)
        logits = torch.zeros(1, count, 40)
        for place in range(count):
            logits[0, place, self.words[min(state.length + place, len(self.words) - 1)]] = 1.0
        return logits, Place(state.length + count, state.memory)


WRITTEN = (11, 12, 13, 14, 15, 16, 17, 2)


@pytest.mark.parametrize(
    ("draft", "passes"),
    [
        (WRITTEN, 1),
        ((11, 12, 30, 14, 15, 16, 17, 2), 2),  # another word
        ((30, 12, 13, 14, 15, 16, 17, 2), 2),  # the first one another
        ((11, 12, 13, 30, 14, 15, 16, 17, 2), 2),  # a word too many
        ((11, 12, 13, 15, 16, 17, 2), 3),  # a word too few
        ((15, 16, 17, 11, 12, 13, 14, 2), 3),  # in another order
        ((30, 31, 32), 8),  # nothing of it
        ((), 8),
    ],
)
def test_a_draft_saves_passes_wherever_it_is_right(draft, passes):
    assert written_in_passes(WRITTEN, draft) == passes


def written_in_passes(words: tuple[int, ...], *drafts: tuple[int, ...]) -> int:
    """Return in how many passes a model writes its words from drafts."""
    model: Any = ByHeart(*words)
    start = cast(Any, Place(0, torch.zeros(1)))
    passes = list(greedy_from_drafts(model, start, drafts, bos_id=1, eos_id=2, most=len(words) + 1))
    assert tuple(words_of(passes)) == words
    assert len(passes) == len(model.passes)
    return len(passes)


def test_after_a_word_that_comes_twice_the_draft_goes_on_where_more_words_are_alike():
    assert written_in_passes((11, 5, 12, 13, 5, 14, 15, 2), (11, 5, 12, 30, 5, 14, 15, 2)) == 2


def test_a_second_draft_goes_on_where_the_first_is_wrong():
    first, second = (11, 12, 13, 30, 31, 32, 33, 2), (11, 12, 14, 15, 16, 17, 18, 2)
    assert written_in_passes((11, 12, 13, 14, 15, 16, 17, 18, 2), first) == 6
    assert written_in_passes((11, 12, 13, 14, 15, 16, 17, 18, 2), first, second) == 2


def test_what_is_written_again_and_again_needs_no_draft():
    assert written_in_passes((*(11, 12, 13) * 9, 2)) == 10


def test_an_id_outside_the_vocabulary_is_refused():
    model = made(Translation)
    with pytest.raises(ValueError, match="outside the vocabulary"):
        drafted(model, [10_000])
