"""Batches of a task and their measures: the same epoch number gives the same batches, on the device of the model.

Read next: classification.py.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.text.special import PAD_ID
from transformer_core.training.batching import bucketed
from transformer_core.training.tasks.task import Measures

T = TypeVar("T")
TOKENS_AT_ONCE = 8_192
QUICK_TOKENS = 4_096
LEAST_QUICK = 64


def epochs_of(
    lengths: Sequence[int], batch_size: int, seed: int, collate: Callable[[list[int]], T]
) -> tuple[Callable[[int], Iterator[T]], int]:
    """Return the batches of any epoch, in a seeded order, and how many there are.

    Args:
        lengths: tokens of each example.
        batch_size: examples a batch.
        seed: with the epoch's number, it fixes the order.
        collate: from places of examples to their batch.
    """

    def batches(epoch: int) -> Iterator[T]:
        for places in bucketed(lengths, batch_size, np.random.default_rng((seed, epoch))):
            yield collate(places)

    return batches, -(-len(lengths) // batch_size)


def in_turn(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of all examples, those of about one length together, a bounded number of tokens at once."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    start = 0
    while start < len(order):
        size = max(1, TOKENS_AT_ONCE // max(lengths[order[min(start + 63, len(order) - 1)]], 1))
        yield order[start : start + min(size, 64)]
        start += min(size, 64)


def sample_size(lengths: Sequence[int]) -> int:
    """Return how many examples, from the first on, a quick measure takes: about 4,000 tokens, and at least 64."""
    mean = max(1, round(sum(lengths) / max(len(lengths), 1)))
    return min(len(lengths), max(LEAST_QUICK, QUICK_TOKENS // mean))


def word_measures(pairs: Iterator[tuple[Tensor, Tensor]]) -> tuple[float, float, float]:
    """Return nats a token, the share of tokens guessed, and the share of rows guessed throughout.

    Shapes:
        pairs: logits (batch, pos, vocab) and words (batch, pos), where padding is not counted
    """
    loss = right = words_seen = rows_right = rows = 0.0
    for logits, words in pairs:
        real = words != PAD_ID
        loss += float(
            F.cross_entropy(logits.float().flatten(0, 1), words.flatten(), ignore_index=PAD_ID, reduction="sum")
        )
        hits = (logits.argmax(-1) == words) & real
        right, words_seen = right + float(hits.sum()), words_seen + float(real.sum())
        rows_right, rows = rows_right + float((hits == real).all(-1).sum()), rows + len(words)
    return loss / max(words_seen, 1.0), right / max(words_seen, 1.0), rows_right / max(rows, 1.0)


def both_parts(measure: Callable[[nn.Module, str, bool], tuple[float, float]]) -> Callable[[nn.Module, bool], Measures]:
    """Return a task's measure, given what measures one part, "train" or "held_out": loss and accuracy."""

    @torch.inference_mode()
    def measures(model: nn.Module, thorough: bool) -> Measures:
        train_loss, train_accuracy = measure(model, "train", False)
        held_out_loss, held_out_accuracy = measure(model, "held_out", thorough)
        return {
            "train_loss": train_loss,
            "train_accuracy": train_accuracy,
            "held_out_loss": held_out_loss,
            "held_out_accuracy": held_out_accuracy,
        }

    return measures
