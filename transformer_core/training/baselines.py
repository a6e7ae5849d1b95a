"""Baselines: the accuracy of rules that ignore word order, to compare a model's accuracy with.

Multinomial logistic regression: Bishop 2006, section 4.3.4; its optimizer, L-BFGS: Liu and Nocedal 1989.
"""

from collections import Counter
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.examples import Example
from transformer_core.text import Tokenizer

PENALTY = 1.0
MOST_ITERATIONS = 100
FLAT = 1e-5
Rows = Sequence[Sequence[int]]


def majority(train_labels: Sequence[int], held_out_labels: Sequence[int]) -> float:
    """Return the held-out accuracy of always predicting the class that is most frequent in training.

    Of equally frequent classes, the one with the lowest number is predicted.

    Raises:
        ValueError: either part is empty.
    """
    _require_examples(train_labels, held_out_labels)
    counts = Counter(train_labels)
    answer = min(counts, key=lambda label: (-counts[label], label))
    return sum(label == answer for label in held_out_labels) / len(held_out_labels)


def bag_of_words(
    train: Sequence[Example], held_out: Sequence[Example], tokenizer: Tokenizer, *, n_classes: int
) -> float:
    """Return the held-out accuracy of logistic regression on how often each token occurs, whatever the order.

    Args:
        train, held_out: labelled texts; their labels run from 0 to n_classes - 1.
        tokenizer: its ids are the features, those of special tokens included.
        n_classes: how many classes there are.

    Raises:
        ValueError: either part is empty, or a label is outside its range.
    """
    rows = [tokenizer.ids_of([example.text for example in part]) for part in (train, held_out)]
    labels = [[example.label for example in part] for part in (train, held_out)]
    return bag_of_ids(rows[0], labels[0], rows[1], labels[1], n_features=tokenizer.vocab_size, n_classes=n_classes)


def bag_of_ids(
    train_rows: Rows,
    train_labels: Sequence[int],
    held_out_rows: Rows,
    held_out_labels: Sequence[int],
    *,
    n_features: int,
    n_classes: int,
) -> float:
    """Do the same as bag_of_words for texts that are already token ids; the same ids give the same accuracy.

    Raises:
        ValueError: either part is empty, or a label is outside its range.
    """
    _require_examples(train_labels, held_out_labels)
    for name, labels in (("train", train_labels), ("held_out", held_out_labels)):
        bad = next((label for label in labels if not 0 <= label < n_classes), None)
        if bad is not None:
            raise ValueError(f"{name} has the label {bad}; it must be at least 0 and less than n_classes={n_classes}")
    weight, bias = fit_bag_of_ids(train_rows, train_labels, n_features=n_features, n_classes=n_classes)
    guesses = (_summed(weight, *_as_bags(held_out_rows)) + bias).argmax(1)  # (example,)
    return float((guesses == torch.tensor(held_out_labels)).double().mean())


def fit_bag_of_ids(
    rows: Rows, labels: Sequence[int], *, n_features: int, n_classes: int, penalty: float = PENALTY
) -> tuple[Tensor, Tensor]:
    """Fit logistic regression to counts of ids.

    Minimises the summed cross entropy, in nats, plus penalty / 2 times the squared norm of the weights; the bias has
    no penalty. The gradient is written out: with X the counts, P the probabilities and Y the answers, X^T (P - Y).

    Shapes:
        returns: weight (feature, class) and bias (class,)

    Args:
        rows: an example's ids, from 0 to n_features - 1, each as often as it occurs.
        labels: one a row, from 0 to n_classes - 1.
    """
    ids, starts = _as_bags(rows)
    examples_of_ids, starts_of_ids = _turned(ids, starts, n_features)
    answers = F.one_hot(torch.tensor(labels), n_classes).float()  # (example, class)
    parameters = torch.zeros(n_features + 1, n_classes)
    optimizer = torch.optim.LBFGS(
        [parameters], max_iter=MOST_ITERATIONS, tolerance_grad=FLAT, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def loss_and_gradient() -> float:
        weight, bias = parameters[:-1], parameters[-1]
        log_p = (_summed(weight, ids, starts) + bias).log_softmax(1)  # (example, class)
        error = log_p.exp() - answers  # (example, class)
        by_feature = _summed(error, examples_of_ids, starts_of_ids) + penalty * weight  # (feature, class)
        parameters.grad = torch.cat([by_feature, error.sum(0, keepdim=True)]) / len(rows)
        return float(penalty / 2 * weight.square().sum() - (log_p * answers).sum()) / len(rows)

    optimizer.step(loss_and_gradient)
    return parameters[:-1], parameters[-1]


def _as_bags(rows: Rows) -> tuple[Tensor, Tensor]:
    """Return all ids in one sequence, and the start of each example in it, as embedding_bag needs them."""
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
    return torch.tensor([id_ for row in rows for id_ in row], dtype=torch.long), lengths.cumsum(0) - lengths


def _turned(ids: Tensor, starts: Tensor, n_features: int) -> tuple[Tensor, Tensor]:
    """Return the examples of each id instead of the ids of each example: the transposed counts."""
    lengths = torch.diff(starts, append=torch.tensor([len(ids)]))
    examples = torch.repeat_interleave(torch.arange(len(starts)), lengths)
    counts = ids.bincount(minlength=n_features)
    return examples[ids.argsort(stable=True)], counts.cumsum(0) - counts


def _summed(table: Tensor, places: Tensor, starts: Tensor) -> Tensor:
    return F.embedding_bag(places, table, starts, mode="sum")


def _require_examples(train: Sequence[object], held_out: Sequence[object]) -> None:
    for name, part in (("train", train), ("held_out", held_out)):
        if not len(part):
            raise ValueError(f"{name} must hold at least one example")
