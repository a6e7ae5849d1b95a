"""Objectives: what is hidden follows BERT's recipe, and the losses are what their definitions say."""

import pytest
import torch
import torch.nn.functional as F

from transformer_core.config import ModelConfig
from transformer_core.models import Bert, Classifier
from transformer_core.text import MASK_ID, SPECIAL_TOKENS
from transformer_core.training.batching import LabelledBatch
from transformer_core.training.objectives import classification, mask_words, masked_words

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
