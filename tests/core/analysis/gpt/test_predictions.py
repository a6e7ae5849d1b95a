"""What a GPT expects and what its mask hides: numbers agree with the model's own logits, and no text is read twice."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.engine import made
from transformer_core.analysis.gpt import kept_logits as kept_module
from transformer_core.analysis.gpt.causality import changed_word, without_mask
from transformer_core.analysis.gpt.kept_logits import entropy_bits, kept_logits, labels_after
from transformer_core.analysis.gpt.lens import logit_lens
from transformer_core.analysis.gpt.next_token import drawn, expected, redrawn, surprisals
from transformer_core.bundle import Bundle
from transformer_core.models import Classifier, Gpt
from transformer_core.text import Tokenizer

TEXT = "a cat sat on a mat"
FREE = {"temperature": 1.0, "top_k": None, "top_p": None}
TOKENIZER = Tokenizer.train("character", [TEXT, "the dog ran"], min_frequency=1, template="none")


def bundle_of(kind: type = Gpt, **changes: Any) -> Bundle:
    """Return a tiny lively model of letters."""
    model = made(kind, vocab_size=TOKENIZER.vocab_size, max_len=24, **changes)
    return Bundle("tiny", model, TOKENIZER)


BUNDLE = bundle_of()
N = len(TOKENIZER.encode(TEXT))
ASKED: dict[str, Any] = {"bundle": BUNDLE, "text": TEXT, "n_tokens": N}


def log_chances() -> Tensor:
    with torch.inference_mode():
        return BUNDLE.model(torch.tensor([TOKENIZER.encode(TEXT).ids]))[0].log_softmax(-1)


def test_surprisal_is_minus_log2_of_what_the_model_gave_the_token() -> None:
    found, ids, chances = surprisals(**ASKED), TOKENIZER.encode(TEXT).ids, log_chances()
    due = [-float(chances[place - 1, ids[place]]) / math.log(2) for place in range(1, N)]
    np.testing.assert_allclose(found.bits[1:], due, rtol=1e-5)
    assert np.isnan(found.bits[0])
    assert found.mean_bits == pytest.approx(float(np.mean(due)), rel=1e-5)
    assert found.foreseen == int((found.rank == 1).sum())
    assert len(found.entropy) == len(found.likeliest) == N + 1


@pytest.mark.parametrize("place", [1, 7, N])
def test_expectation_adds_up_to_one_and_names_what_came(place: int) -> None:
    found = expected(**ASKED, place=place, top=5)
    assert found.probabilities.sum() + found.rest == pytest.approx(1.0, abs=1e-5)
    assert found.n_rest + 5 == TOKENIZER.vocab_size
    assert 0 < found.entropy <= found.greatest + 1e-6
    if place < N:
        assert found.came == TOKENIZER.encode(TEXT).labels[place]
        assert found.came_bits == pytest.approx(surprisals(**ASKED).bits[place])
    else:
        assert (found.came, found.came_id) == ("", -1)


def test_a_place_without_a_token_before_it_is_refused() -> None:
    with pytest.raises(ValueError, match=f"place=0 must be from 1 to {N}"):
        expected(**ASKED, place=0, top=5)
    with pytest.raises(ValueError, match="must be a gpt"):
        kept_logits(bundle_of(Classifier), TEXT, N)


def test_temperature_and_cuts_need_no_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    forward = BUNDLE.model.forward

    def counted(*inputs: Any, **options: Any) -> Tensor:
        passes.append(1)
        return forward(*inputs, **options)

    monkeypatch.setattr(BUNDLE.model, "forward", counted)
    kept_module.kept_logits.cache_clear()
    for temperature in (0.3, 1.0, 2.0):
        for top_k, top_p in ((None, None), (3, None), (None, 0.5), (5, 0.9)):
            redrawn(**ASKED, place=N, temperature=temperature, top_k=top_k, top_p=top_p, top=5)
            drawn(**ASKED, place=4, temperature=temperature, top_k=top_k, top_p=top_p, top=5, seed=1, draws=10)
    assert len(passes) == 1


def test_the_rules_leave_nothing_as_it_was_when_they_are_off() -> None:
    found = redrawn(**ASKED, place=N, **FREE, top=5)
    np.testing.assert_allclose(found.before, found.after, rtol=1e-5)
    assert found.cut == pytest.approx(0.0, abs=1e-6)
    assert found.n_kept == found.n_tokens


def test_a_cut_keeps_the_likeliest_and_their_proportions() -> None:
    found = redrawn(**ASKED, place=N, temperature=1.0, top_k=3, top_p=None, top=5)
    assert found.rest_after == 0.0
    assert found.kept.tolist() == [True, True, True, False, False]
    assert found.n_kept == 3
    np.testing.assert_allclose(found.after[:3], found.before[:3] / found.before[:3].sum(), rtol=1e-4)
    assert found.cut == pytest.approx(1 - float(found.before[:3].sum()), abs=1e-5)
    assert found.entropy_after < found.entropy_before


def test_cooling_lowers_the_entropy_and_heating_raises_it() -> None:
    low, one, high = (
        redrawn(**ASKED, place=N, temperature=temperature, top_k=None, top_p=None, top=5).entropy_after
        for temperature in (0.3, 1.0, 3.0)
    )
    assert low < one < high


def test_draws_follow_the_chances_and_repeat_with_their_seed() -> None:
    many = drawn(**ASKED, place=N, **FREE, top=6, seed=3, draws=50_000)
    assert many.counts.sum() == 50_000
    np.testing.assert_allclose(many.counts / 50_000, many.chances, atol=0.01)
    assert many.distance < 0.02
    assert many.possible == 7
    few = drawn(**ASKED, place=N, temperature=1.0, top_k=2, top_p=None, top=6, seed=3, draws=100)
    assert few.possible == 2
    assert not few.counts[2:].any()
    again = drawn(**ASKED, place=N, **FREE, top=6, seed=3, draws=50_000)
    np.testing.assert_array_equal(many.counts, again.counts)


def test_entropy_is_known_for_simple_distributions() -> None:
    assert float(entropy_bits(torch.full((8,), 1 / 8))) == pytest.approx(3.0)
    assert float(entropy_bits(torch.tensor([1.0, 0.0]))) == 0.0


@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_last_row_of_the_lens_is_the_model(order: str) -> None:
    bundle = bundle_of(norm_order=order)
    found = logit_lens(bundle=bundle, text=TEXT, n_tokens=N, first=3, count=9)
    assert found.difference < 1e-5
    assert found.probability.shape == (bundle.config.n_layers + 1, 9)
    assert found.choices[-1] == found.answers
    assert (found.answer_rank[-1] == 1).all()
    with torch.inference_mode():
        chances = bundle.model(torch.tensor([TOKENIZER.encode(TEXT).ids]))[0, 2:11].softmax(-1)
    np.testing.assert_allclose(found.probability[-1], chances.amax(-1).numpy(), rtol=1e-4)
    came = surprisals(bundle=bundle, text=TEXT, n_tokens=N).bits[3:12]  # of the tokens after these places
    np.testing.assert_allclose(found.mean_bits[-1], came.mean(), rtol=1e-4)
    for column, stage in enumerate(found.settled):
        names = [row[column] == found.answers[column] for row in found.choices]
        assert all(names[stage:])
        assert stage == 0 or not names[stage - 1]


def test_nothing_before_a_changed_word_moves_under_the_mask_and_all_of_it_without() -> None:
    found = changed_word(**ASKED, place=10, words="dog")
    assert found.place == 10
    assert found.earlier_masked == 0.0
    assert not found.masked[:, :10].any()
    assert found.moved_masked == 0
    assert found.masked[:, 10].any()
    assert found.moved_unmasked == 10
    assert not found.unmasked[0, :10].any()  # the embedding looks at nobody


def test_words_that_stand_there_already_change_nothing() -> None:
    found = changed_word(**ASKED, place=2, words="cat")
    assert found.place == -1
    assert not found.replaced.any()
    assert not found.masked.any()


def test_without_the_mask_the_reading_is_another_one() -> None:
    found = without_mask(**ASKED)
    np.testing.assert_allclose(found.masked[1:], surprisals(**ASKED).bits[1:], rtol=1e-4)
    assert found.mean_masked != found.mean_unmasked
    assert 0 <= found.right_unmasked < N


def test_a_part_of_a_character_is_labelled_by_what_it_completes() -> None:
    tokenizer = Tokenizer.train("bpe", ["plain words only"], vocab_size=270, template="none")
    ids = tokenizer.encode("a你").ids
    assert labels_after(tokenizer, ids[:-1], [ids[-1]]) == ("你 3/3",)
    assert labels_after(tokenizer, [], [ids[1], tokenizer.vocab_size + 5]) == ("<E4>", f"<{tokenizer.vocab_size + 5}>")
