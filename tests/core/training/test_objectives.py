"""Objectives: what is hidden follows BERT's recipe, and the losses are what their definitions say."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_core.config import ModelConfig
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.text import MASK_ID, PAD_ID, SPECIAL_TOKENS
from transformer_core.training.batching import LabelledBatch, PairBatch
from transformer_core.training.objectives import (
    classification,
    mask_words,
    masked_words,
    next_target_words,
    next_words,
)

CONFIG = ModelConfig(vocab_size=50, d_model=16, n_heads=2, d_ff=32, n_layers=1, max_len=16, dropout=0.0)


def some_batch():
    torch.manual_seed(0)
    return LabelledBatch(torch.randint(7, 50, (6, 12)), torch.tensor([0, 1, 0, 1, 1, 0]))


def test_hidden_words_are_chosen_and_replaced_in_the_papers_shares():
    torch.manual_seed(0)
    token_ids = torch.randint(7, 5_000, (400, 250))
    corrupted, chosen = mask_words(token_ids, 5_000, probability=0.15)
    assert chosen.float().mean().item() == pytest.approx(0.15, abs=0.01)
    fate = corrupted[chosen]
    assert (fate == MASK_ID).float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert (fate == token_ids[chosen]).float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert torch.equal(corrupted[~chosen], token_ids[~chosen])
    assert int(fate[fate != MASK_ID].min()) >= len(SPECIAL_TOKENS)


def test_special_tokens_are_never_hidden():
    special = torch.arange(len(SPECIAL_TOKENS)).repeat(50, 1)
    corrupted, chosen = mask_words(special, 50, probability=1.0)
    assert not chosen.any()
    assert torch.equal(corrupted, special)


def test_what_cannot_be_hidden_is_refused():
    with pytest.raises(ValueError, match=r"probability=1\.5 must be at least 0 and at most 1"):
        mask_words(torch.zeros(1, 1, dtype=torch.long), 50, probability=1.5)
    with pytest.raises(ValueError, match="vocab_size=7 must be greater than 7, the number of special tokens"):
        mask_words(torch.zeros(1, 1, dtype=torch.long), 7, probability=0.5)


def test_masked_words_equals_bert_scored_everywhere():
    batch, model = some_batch(), Bert(CONFIG).eval()
    torch.manual_seed(1)
    loss = masked_words(model, batch, probability=0.5)
    torch.manual_seed(1)
    corrupted, chosen = mask_words(batch.token_ids, 50, probability=0.5)
    targets = batch.token_ids.masked_fill(~chosen, -100)
    expected = F.cross_entropy(model(corrupted).mlm_logits.transpose(1, 2), targets, ignore_index=-100)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_batch_with_nothing_hidden_has_no_loss():
    loss = masked_words(Bert(CONFIG), some_batch(), probability=0.0)
    loss.backward()
    assert loss.item() == 0.0


def test_label_smoothing_is_a_mixture_with_the_uniform_distribution():
    batch, model = some_batch(), Classifier(CONFIG).eval()
    log_probabilities = model(batch.token_ids).log_softmax(-1)
    plain = -log_probabilities[torch.arange(6), batch.labels].mean()
    uniform = -log_probabilities.mean()
    smoothed = classification(model, batch, label_smoothing=0.2)
    assert smoothed.item() == pytest.approx((0.8 * plain + 0.2 * uniform).item(), rel=1e-5)


def test_words_can_be_hidden_from_the_classifier():
    batch, model = some_batch(), Classifier(CONFIG).eval()
    torch.manual_seed(2)
    loss = classification(model, batch, hide=0.5)
    torch.manual_seed(2)
    corrupted, _ = mask_words(batch.token_ids, 50, probability=0.5)
    assert loss.item() == classification(model, LabelledBatch(corrupted, batch.labels)).item()


def test_the_softmax_before_the_loss_keeps_it_from_falling():
    model, batch = Classifier(CONFIG), some_batch()
    with torch.no_grad():
        model.class_proj.weight.zero_()
        model.class_proj.bias.copy_(torch.tensor([50.0, -50.0]))
    all_first = LabelledBatch(batch.token_ids, torch.zeros_like(batch.labels))
    assert classification(model, all_first).item() == pytest.approx(0.0, abs=1e-6)
    slipped = classification(model, all_first, softmax_before_loss=True).item()
    assert slipped == pytest.approx(math.log(1 + math.exp(-1)), abs=1e-6)


def test_next_words_is_the_mean_over_words_that_are_not_padding():
    model = Gpt(CONFIG)
    token_ids = some_batch().token_ids.clone()
    token_ids[0, 6:] = PAD_ID
    logits = model(token_ids[:, :-1]).log_softmax(-1)
    scores = -logits.gather(-1, token_ids[:, 1:, None])[..., 0]
    assert next_words(model, token_ids).item() == pytest.approx(scores[token_ids[:, 1:] != PAD_ID].mean().item(), 1e-5)


def test_next_target_words_see_the_source_and_what_precedes_alone():
    model = Translation(CONFIG)
    source, target = some_batch().token_ids, some_batch().token_ids[:, :5]
    expected = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
    assert next_target_words(model, PairBatch(source, target)).item() == pytest.approx(expected.item(), rel=1e-6)
    smoothed = next_target_words(model, PairBatch(source, target), label_smoothing=0.2)
    assert smoothed.item() != pytest.approx(expected.item(), rel=1e-6)
