"""What a verdict rests on: rollout and entropy, tokens and words hidden, one word exchanged."""

import math

import numpy as np
import pytest
import torch

from tests.helpers.engine import random_weights, shipped, small_bundle
from transformer_core.analysis.attention.heads import entropy, head_entropies
from transformer_core.analysis.attention.occlusion import occlusion, verdict_evidence, word_importance
from transformer_core.analysis.attention.rollout import attention_flow, rollout
from transformer_core.analysis.counter_examples import MOST_TRIED, counter_examples
from transformer_core.analysis.outcome import one_text, read
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.text.encoding import words_of

TINY_TEXT = "a glass box a glass bell"


def test_rollout_is_the_product_of_half_the_mean_head_and_half_the_identity_the_last_layer_left() -> None:
    weights = random_weights(3, 2, 4)
    first, second, last = (0.5 * layer.mean(0) + 0.5 * np.eye(4) for layer in weights)
    np.testing.assert_allclose(rollout(weights), last @ second @ first, atol=1e-12)


def test_entropy_is_minus_the_sum_of_w_ln_w() -> None:
    row = np.array([0.5, 0.25, 0.25, 0.0])
    assert entropy(row) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(4))
    assert entropy(np.full(8, 1 / 8)) == pytest.approx(math.log(8))
    assert entropy(np.eye(3)).max() == 0


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_verdict_rests_on_shares_that_sum_to_one(pooling: str) -> None:
    flow = attention_flow(prompt=Prompt(small_bundle(pooling=pooling), TINY_TEXT, 12))
    assert flow.verdict_rollout.sum() == pytest.approx(1, abs=1e-6)
    assert flow.verdict_last.sum() == pytest.approx(1, abs=1e-6)
    if pooling == "cls":
        np.testing.assert_array_equal(flow.verdict_rollout, flow.rollout[0])


def test_entropies_stay_below_their_maximum_and_padding_counts_for_nothing() -> None:
    found = head_entropies(prompt=Prompt(small_bundle(), f"{TINY_TEXT} [PAD] [PAD]", 12))
    assert found.greatest == pytest.approx(math.log(8))  # [CLS], six words, [SEP]
    assert found.tokens.max() <= found.greatest + 1e-5
    np.testing.assert_allclose(found.shares, found.heads / found.greatest)


def test_occlusion_is_what_the_model_says_of_the_changed_text() -> None:
    bundle = small_bundle()
    hidden = occlusion(prompt=Prompt(bundle, TINY_TEXT, 12), substitute="mask")
    before = read(bundle, bundle.tokenizer.encode(TINY_TEXT), sites=("class_logits",)).probabilities
    after = read(bundle, bundle.tokenizer.encode("a [MASK] box a glass bell"), sites=("class_logits",)).probabilities
    assert hidden.before == pytest.approx(max(before), abs=1e-6)
    assert hidden.change[2] == pytest.approx(after[hidden.winner] - before[hidden.winner], abs=1e-6)
    assert np.isnan(hidden.change[[0, -1]]).all()
    assert np.isfinite(hidden.change[1:-1]).all()


def test_a_token_that_is_the_substitute_already_has_no_effect_to_tell() -> None:
    hidden = occlusion(prompt=Prompt(small_bundle(), "a nowhere box", 12), substitute="unk")
    assert np.isnan(hidden.change[2])
    assert np.isfinite(hidden.change[1])


def test_a_substitute_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="substitute='blank' must be mask or unk"):
        occlusion(prompt=Prompt(small_bundle(), TINY_TEXT, 12), substitute="blank")  # pyright: ignore


def test_evidence_ranks_the_words_alone() -> None:
    found = verdict_evidence(prompt=Prompt(small_bundle(), TINY_TEXT, 12))
    assert found.rollout_agrees.count == found.last_agrees.count == 6
    np.testing.assert_allclose(found.effect[1:-1], np.abs(found.occlusion.change[1:-1]))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("sentiment", "It wasn't phenomenologically bad, 很好!", "It wasn't phenomenologically bad , 很 好 !"),
        ("gpt", "A man  is", "A man is"),
        ("gpt-char", "A man  is", "A man is"),
        ("gpt", "a 😀 b", "a 😀 b"),
    ],
)
def test_pieces_signs_and_blanks_make_the_words_that_one_reads(name: str, text: str, words: str) -> None:
    found = words_of(shipped(name).tokenizer.encode(text))
    assert [text[word.start : word.end] for word in found] == words.split()


def test_special_tokens_are_no_words(sentiment: Bundle) -> None:
    found = word_importance(prompt=Prompt(sentiment, "[MASK] [PAD]", 8))
    assert found.spans.shape == (0, 2)
    assert len(found.worth) == 0


def test_a_word_of_one_token_is_worth_what_occlusion_says(sentiment: Bundle) -> None:
    text = "This is not a good film."
    found = word_importance(prompt=Prompt(sentiment, text, 32))
    by_token = occlusion(prompt=Prompt(sentiment, text, 32))
    assert found.winner == by_token.winner
    np.testing.assert_allclose(found.worth, -by_token.change[1:-1], atol=1e-6)


def test_the_pieces_of_a_word_are_hidden_together(sentiment: Bundle) -> None:
    text = "A phenomenologically dull film"
    encoding = sentiment.tokenizer.encode(text)
    word = words_of(encoding)[1]
    assert len(word.places) > 1
    ids = one_text(sentiment, encoding)
    hidden = ids.clone()
    hidden[0, list(word.places)] = sentiment.tokenizer.mask_id
    with torch.no_grad():
        whole, without = (sentiment.model(each).softmax(-1)[0] for each in (ids, hidden))
    winner = int(whole.argmax())
    found = word_importance(prompt=Prompt(sentiment, text, 32))
    assert found.worth[1] == pytest.approx(float(whole[winner] - without[winner]), abs=1e-5)


def test_a_gpt_reads_without_the_word_and_never_without_the_last() -> None:
    bundle = shipped("gpt")
    text = "A man is riding a"
    encoding = bundle.tokenizer.encode(text)
    found = word_importance(prompt=Prompt(bundle, text, 32))
    assert np.isnan(found.worth[-1])
    mask = torch.ones(len(encoding), len(encoding), dtype=torch.bool).tril()
    mask[4:, 3] = False  # no later token may look at "riding"
    with torch.no_grad():
        outcome = bundle.reader.outcome(encoding)
        logits = [
            outcome.logits(bundle.model(one_text(bundle, encoding), mask=each)) for each in (None, mask[None, None])
        ]
    whole, without = (each.softmax(-1)[0] for each in logits)
    assert found.worth[3] == pytest.approx(float(whole[found.winner] - without[found.winner]), abs=1e-5)


def test_behind_a_mask_every_other_word_is_hidden() -> None:
    bundle = shipped("bert")
    text = "A man in a [MASK] shirt."
    found = word_importance(prompt=Prompt(bundle, text, 32))
    assert [text[start:end] for start, end in found.spans] == ["A", "man", "in", "a", "shirt", "."]
    assert np.isfinite(found.worth).all()


TEXT = "I expected a masterpiece, but the story was dull and the ending was a bore."


@pytest.mark.parametrize("text", [TEXT, "This is not a good film.", "The food was cold and the waiter was rude."])
def test_they_turn_the_verdict_as_the_model_reads_them_alone(sentiment: Bundle, text: str) -> None:
    found = counter_examples(prompt=Prompt(sentiment, text, 64))
    assert 0 < found.turns <= found.tried <= MOST_TRIED
    assert len(found.found) == 2
    for each in found.found:
        probabilities = read(sentiment, sentiment.tokenizer.encode(each.text), sites=()).probabilities
        assert each.winner == int(probabilities.argmax()) != found.winner
        assert each.probability == pytest.approx(max(probabilities), abs=1e-4)
        assert each.left == pytest.approx(probabilities[found.winner], abs=1e-4)


def test_one_word_changes_and_nothing_else(sentiment: Bundle) -> None:
    for each in counter_examples(prompt=Prompt(sentiment, TEXT, 64)).found:
        assert each.text[each.start : each.end] == each.new
        now, before = each.text.split(), TEXT.split()
        if each.new:
            assert [one for one, other in zip(before, now, strict=True) if one != other] == [each.old]
        else:
            assert len(now) == len(before) - 1
            assert "  " not in each.text


def test_where_nothing_turns_it_those_that_come_closest_are_shown(sentiment: Bundle) -> None:
    found = counter_examples(
        prompt=Prompt(
            sentiment, "A wonderful, moving and funny film, one of the best of the year, with a great cast.", 64
        ),
    )
    assert found.turns == 0
    assert [each.winner for each in found.found] == [found.winner] * 2
    assert found.found[0].left <= found.found[1].left < found.before


def test_articles_stay_right(sentiment: Bundle) -> None:
    found = counter_examples(prompt=Prompt(sentiment, "It is a dull story.", 64))
    assert not any(f"a {each.new}"[:3] in ("a a", "a e", "a i", "a o") for each in found.found if each.old == "dull")


@pytest.mark.parametrize("text", ["?!", "😀", "\u202ea", "a", "a" * 400, "[MASK] [PAD]"])
def test_hostile_texts_are_read(sentiment: Bundle, text: str) -> None:
    found = counter_examples(prompt=Prompt(sentiment, text, 64))
    assert all(each.text.strip() for each in found.found)


def test_the_work_is_bounded_for_a_long_text(sentiment: Bundle) -> None:
    found = counter_examples(prompt=Prompt(sentiment, "a dull but wonderful plot " * 24, 128))
    assert found.tried <= 2_400 // 100


@pytest.mark.parametrize(
    ("name", "text"), [("gpt", "A man in a red shirt is riding a"), ("bert", "A man in a [MASK] shirt rides.")]
)
def test_other_outcomes_are_read_at_their_own_place(name: str, text: str) -> None:
    bundle = shipped(name)
    for each in counter_examples(prompt=Prompt(bundle, text, 64)).found:
        encoding = bundle.tokenizer.encode(each.text)
        assert bundle.reader.outcome(encoding) is not None
        probabilities = read(bundle, encoding, sites=()).probabilities
        assert each.winner == int(probabilities.argmax())
        assert each.probability == pytest.approx(max(probabilities), abs=1e-3)
