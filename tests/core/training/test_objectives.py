"""Objectives, baselines and splits are what their definitions say."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.config import ModelConfig
from transformer_core.examples import Example, distinct, split
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.text import MASK_ID, PAD_ID, SPECIAL_TOKENS, Tokenizer
from transformer_core.training import baselines, objectives
from transformer_core.training.baselines import bag_of_ids, bag_of_words, fit_bag_of_ids, majority
from transformer_core.training.batching import LabelledBatch, PackedBatch, PairBatch
from transformer_core.training.objectives import (
    classification,
    expert_balance,
    mask_words,
    masked_words,
    masked_words_and_pairs,
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


def test_the_balance_is_1_where_all_experts_have_one_load_and_n_where_one_has_all():
    even = torch.full((8, 4), 0.1) + 0.6 * torch.eye(4).repeat(2, 1)
    one = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(8, 1)
    assert expert_balance(even, 1).item() == pytest.approx(1.0)
    assert expert_balance(one, 1).item() == pytest.approx(4.0)
    assert expert_balance(torch.full((8, 4), 0.25), 2).item() == pytest.approx(1.0)
    assert expert_balance(torch.zeros(0, 4), 1).item() == 0.0


def test_a_step_along_the_balance_evens_the_load():
    torch.manual_seed(0)
    scores = (torch.randn(64, 4) + torch.tensor([2.0, 0.0, 0.0, 0.0])).requires_grad_()
    before = expert_balance(scores.softmax(-1), 1)
    before.backward()
    after = expert_balance((scores - 50 * scores.grad).softmax(-1), 1)
    assert after < before


TOKENS = torch.randint(7, 50, (6, 12), generator=torch.Generator().manual_seed(0))
LABELLED = LabelledBatch(TOKENS, torch.tensor([0, 1, 0, 1, 1, 0]))
OBJECTIVES = {
    Gpt: lambda model, balance: next_words(model, TOKENS, balance=balance),
    Translation: lambda model, balance: next_target_words(model, PairBatch(TOKENS, TOKENS[:, :5]), balance=balance),
    Classifier: lambda model, balance: classification(model, LABELLED, balance=balance),
    Bert: lambda model, balance: masked_words(model, LABELLED, balance=balance),
}


@pytest.mark.parametrize("kind", OBJECTIVES, ids=lambda kind: kind.__name__)
def test_the_balance_of_experts_is_in_the_gradient_and_not_in_the_value(kind):
    torch.manual_seed(0)
    model = kind(replace(CONFIG, n_experts=3, n_active_experts=1))
    router = next(weight for name, weight in model.named_parameters() if "router" in name)
    found = {}
    for balance in (0.0, 0.5):
        torch.manual_seed(1)
        loss = OBJECTIVES[kind](model, balance)
        found[balance] = loss.item(), torch.autograd.grad(loss, router)[0]
    assert found[0.0][0] == found[0.5][0]
    assert not torch.allclose(found[0.0][1], found[0.5][1], atol=1e-4)


def test_pairs_balance_their_experts_too():
    torch.manual_seed(0)
    model = Bert(replace(CONFIG, n_experts=3, n_active_experts=1, n_segments=2))
    batch = PackedBatch(TOKENS, TOKENS * 0, torch.tensor([0, 1, 0, 1, 1, 0]))
    router = model.encoder.stack.layers[0].feed_forward.router.weight
    loss = masked_words_and_pairs(model, batch, probability=0.0, balance=1e6)
    assert torch.autograd.grad(loss, router)[0].abs().max() > 1.0


def test_padding_has_no_share_in_the_balance():
    torch.manual_seed(0)
    model = Gpt(replace(CONFIG, n_experts=3, n_active_experts=1))
    router = model.decoder.stack.layers[0].feed_forward.router.weight
    padded = torch.cat([TOKENS, torch.full((6, 4), PAD_ID)], dim=1)
    alone, beside = (
        torch.autograd.grad(next_words(model, ids, balance=100.0), router)[0]
        for ids in (torch.cat([TOKENS, torch.full((6, 1), PAD_ID)], dim=1), padded)
    )
    torch.testing.assert_close(alone, beside, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("more", [0, 1, 4])
def test_the_balance_counts_each_token_that_is_read_and_no_padding(more, monkeypatch):
    counted = []

    def noted(probabilities, n_active):
        counted.append(len(probabilities))
        return expert_balance(probabilities, n_active)

    monkeypatch.setattr(objectives, "expert_balance", noted)
    model = Gpt(replace(CONFIG, n_experts=3, n_active_experts=1))
    next_words(model, torch.cat([TOKENS, torch.full((len(TOKENS), more), PAD_ID)], dim=1))
    assert set(counted) == {72 if more else 66}  # of the last token of all nothing is asked


def rows_of(n_rows, n_features, n_classes, seed=0):
    """Return rows whose class makes some ids more frequent."""
    generator = torch.Generator().manual_seed(seed)
    labels = [place % n_classes for place in range(n_rows)]
    rows = [(torch.randint(0, n_features - n_classes, (6,), generator=generator) + label).tolist() for label in labels]
    return rows, labels


def counts_of(rows, n_features):
    return torch.stack([torch.tensor(row).bincount(minlength=n_features) for row in rows]).double()


@pytest.mark.parametrize("n_classes", [2, 5, 20])
def test_the_fit_is_where_the_penalised_loss_is_flat(n_classes):
    rows, labels = rows_of(200, 30, n_classes)
    weight, bias = (
        p.double().requires_grad_() for p in fit_bag_of_ids(rows, labels, n_features=30, n_classes=n_classes)
    )
    logits = counts_of(rows, 30) @ weight + bias
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="sum")
    (loss + weight.square().sum() / 2).backward()
    assert weight.grad is not None
    assert bias.grad is not None
    assert max(weight.grad.abs().max(), bias.grad.abs().max()) < 0.01


def test_one_word_that_tells_the_class_has_the_known_weight():
    rows, labels = [[0]] * 10 + [[1]] * 10, [0] * 10 + [1] * 10
    weight, bias = fit_bag_of_ids(rows, labels, n_features=2, n_classes=2)
    # By symmetry every weight is w or -w, and the loss 20 log(1 + exp(-2 w)) + 2 w^2 is flat where 10 s(-2 w) = w.
    w = float(weight[0, 0])
    assert torch.allclose(weight, torch.tensor([[w, -w], [-w, w]]), atol=1e-4)
    assert abs(10 / (1 + torch.tensor(2 * w).exp()) - w) < 1e-3
    assert torch.allclose(bias, torch.zeros(2), atol=1e-4)


def test_a_weaker_penalty_gives_larger_weights():
    rows, labels = rows_of(100, 12, 3)
    norms = [
        fit_bag_of_ids(rows, labels, n_features=12, n_classes=3, penalty=penalty)[0].norm() for penalty in (0.1, 1, 10)
    ]
    assert norms[0] > norms[1] > norms[2]


def test_an_empty_row_is_told_by_the_bias_alone():
    rows = [[], [], [], [1], [0], [0]]
    assert bag_of_ids(rows, [0, 0, 0, 1, 1, 1], [[]], [0], n_features=3, n_classes=2) == 1.0


def test_the_order_of_words_is_not_seen():
    train = [Example("not dull", 1), Example("dull not", 0)] * 20
    tokenizer = Tokenizer.train("word", [example.text for example in train])
    assert bag_of_words(train, train, tokenizer, n_classes=2) == 0.5


def test_words_are_seen_and_the_number_is_the_same_each_time():
    train = [Example(f"the soup was {word}", label) for label, word in enumerate(["bad", "good", "cold"])] * 5
    held_out = [Example("good soup", 1), Example("a bad bad soup", 0), Example("cold", 2), Example("good", 0)]
    tokenizer = Tokenizer.train("word", [example.text for example in train])
    assert [bag_of_words(train, held_out, tokenizer, n_classes=3) for _ in range(2)] == [0.75, 0.75]


def test_a_fit_ends_within_the_most_iterations_and_reads_each_text_once_in_each(monkeypatch):
    """Each look at the loss sums up every row twice, over its own ids alone: no table of all texts by all words."""
    sums = []
    summed = baselines._summed
    monkeypatch.setattr(baselines, "_summed", lambda *of: sums.append(len(of[1])) or summed(*of))
    rows, labels = rows_of(400, 80, 2)
    fit_bag_of_ids(rows, labels, n_features=80, n_classes=2)
    assert set(sums) == {sum(map(len, rows))}
    assert len(sums) <= 2 * 1.25 * baselines.MOST_ITERATIONS


def test_majority_answers_the_most_frequent_class_of_training():
    assert majority([0, 1, 1], [1, 1, 0, 2]) == 0.5
    assert majority([2, 1, 2, 1], [1, 1, 2]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("labels", "held_out_labels", "words"),
    [
        ([], [0], "train must hold at least one example"),
        ([0], [], "held_out must hold at least one example"),
        ([0, 2], [0], "train has the label 2; it must be at least 0 and less than n_classes=2"),
        ([0, 1], [-1], "held_out has the label -1"),
    ],
)
def test_bad_input_gets_words(labels, held_out_labels, words):
    with pytest.raises(ValueError, match=words):
        bag_of_ids(
            [[0]] * len(labels), labels, [[0]] * len(held_out_labels), held_out_labels, n_features=2, n_classes=2
        )
    if not (labels and held_out_labels):
        with pytest.raises(ValueError, match=words):
            majority(labels, held_out_labels)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
lists = st.lists(st.builds(Example, texts, st.integers(0, 19)), min_size=1)


def same(text):
    return " ".join(text.casefold().split())


@given(lists, st.integers(1, 60), st.integers(0, 9))
def test_no_text_is_in_both_parts_and_none_is_lost(examples, held_out, seed):
    counts = Counter(example.label for example in distinct(examples))
    if min(counts.values()) < 2:
        with pytest.raises(ValueError, match="to hold one out, at least 2 are needed"):
            split(examples, held_out, seed)
        return
    train, aside = split(examples, held_out, seed)
    assert not {same(example.text) for example in train} & {same(example.text) for example in aside}
    assert sorted([*train, *aside], key=str) == sorted(distinct(examples), key=str)
    assert {example.label for example in train} == {example.label for example in aside} == counts.keys()
    assert len(aside) <= max(held_out, len(counts))
    assert len(aside) <= max(sum(counts.values()) // 4, len(counts))
    assert (train, aside) == split(examples, held_out, seed)


def test_a_split_keeps_the_shares_of_the_classes():
    examples = [Example(f"text {n}", int(n % 10 == 0) + int(n % 5 == 0)) for n in range(1_000)]
    train, aside = split(examples, 100, 3)
    assert Counter(example.label for example in aside) == {0: 80, 1: 10, 2: 10}
    assert 0.7 < np.mean([example.label == 0 for example in train[:100]]) < 0.9
    assert aside != split(examples, 100, 4)[1]
    with pytest.raises(ValueError, match="held_out=0 must be at least 1"):
        split(examples, 0, 3)


def test_the_first_of_equal_texts_is_kept():
    kept = distinct([Example("A  b", 1), Example("c", 0), Example(" a B", 0)])
    assert set(kept) == {Example("A  b", 1), Example("c", 0)}
    assert len(kept) == 2
