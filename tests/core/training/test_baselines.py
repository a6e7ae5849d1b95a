"""Baselines: the fit reaches the optimum, order of words does not matter, and labels out of range get words."""

import time

import pytest
import torch

from transformer_core.text import Tokenizer
from transformer_core.training.baselines import bag_of_ids, bag_of_words, fit_bag_of_ids, majority
from transformer_core.training.examples import Example


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


def test_four_thousand_short_texts_take_a_second_at_most():
    rows, labels = rows_of(4_000, 800, 2)
    fit_bag_of_ids(rows[:10], labels[:10], n_features=800, n_classes=2)
    started = time.process_time()
    bag_of_ids(rows, labels, rows[:500], labels[:500], n_features=800, n_classes=2)
    assert time.process_time() - started < 1.0


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
