"""Batches of examples of similar length, in a seeded random order, so that little of a batch is padding.

Vaswani et al. 2017, section 5.1.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import torch
from torch import Tensor

POOL_BATCHES = 64
TOKENS_AT_ONCE = 8_192
MOST_ROWS_AT_ONCE = 64
UNPAIRED = -100  # the class that cross entropy ignores
T = TypeVar("T")


class Batch:
    """Tensors of the same examples."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""
        return type(self)(**{name: tensor.to(device) for name, tensor in vars(self).items()})


@dataclass(frozen=True, eq=False)
class LabelledBatch(Batch):
    """Examples as tensors.

    Shapes:
        token_ids: (batch, pos), padded on the right; labels: (batch,)
    """

    token_ids: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class PairBatch(Batch):
    """Sources and their targets as tensors.

    Shapes:
        source_ids: (batch, source_pos); target_ids: (batch, target_pos); both padded on the right
    """

    source_ids: Tensor
    target_ids: Tensor


@dataclass(frozen=True, eq=False)
class PackedBatch(Batch):
    """Sentences, single or packed in pairs, as tensors.

    Shapes:
        token_ids, segment_ids: (batch, pos), padded on the right
        classes: (batch,), 0 = the second sentence belongs to the first, 1 = it does not, UNPAIRED = there is none
    """

    token_ids: Tensor
    segment_ids: Tensor
    classes: Tensor


def padded(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Stack rows of ids into one tensor, padded on the right to the longest.

    Shapes:
        returns: (batch, pos)

    Raises:
        ValueError: there are no rows, or all are empty.
    """
    width = max(map(len, rows), default=0)
    if not width:
        raise ValueError(f"rows={rows!r:.40} must hold at least one row with at least one id")
    table = np.full((len(rows), width), pad_id, dtype=np.int64)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return torch.from_numpy(table)


def bucketed(lengths: Sequence[int], batch_size: int, rng: np.random.Generator) -> list[list[int]]:
    """Group examples into batches of similar length.

    The shuffled examples are divided into pools of 64 batches; each pool is sorted by length and cut into batches; then
    all batches are shuffled. A batch is uniform in length, and the order of an epoch stays random.

    Args:
        lengths: one number an example, such as its tokens.
        batch_size: examples a batch; the last batch of the last pool may be smaller.
        rng: of all shuffles.

    Returns:
        The positions of the examples in `lengths`, batch by batch; every example occurs once.

    Raises:
        ValueError: batch_size is less than 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} must be at least 1")
    order = rng.permutation(len(lengths))
    pool_size = batch_size * POOL_BATCHES
    batches = []
    for start in range(0, len(order), pool_size):
        pool = sorted(order[start : start + pool_size].tolist(), key=lengths.__getitem__)
        batches += [pool[cut : cut + batch_size] for cut in range(0, len(pool), batch_size)]
    return [batches[index] for index in rng.permutation(len(batches))]


def epochs_of(
    lengths: Sequence[int], batch_size: int, seed: int, collate: Callable[[list[int]], T]
) -> tuple[Callable[[int], Iterator[T]], int]:
    """Return the batches of any epoch, in a seeded order, and how many there are.

    Args:
        lengths: tokens of each example.
        batch_size: examples a batch.
        seed: together with the epoch's number it determines the order.
        collate: from positions of examples to their batch.
    """

    def batches(epoch: int) -> Iterator[T]:
        for places in bucketed(lengths, batch_size, np.random.default_rng((seed, epoch))):
            yield collate(places)

    return batches, -(-len(lengths) // batch_size)


def in_turn(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the positions of all examples in batches of similar length, each with a bounded number of tokens."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    start = 0
    while start < len(order):
        size = max(1, TOKENS_AT_ONCE // max(lengths[order[min(start + MOST_ROWS_AT_ONCE, len(order)) - 1]], 1))
        yield order[start : start + min(size, MOST_ROWS_AT_ONCE)]
        start += min(size, MOST_ROWS_AT_ONCE)


def random_windows(ids: Tensor, width: int, size: int, *, steps: int, seed: int) -> Callable[[int], Iterator[Tensor]]:
    """Return the batches of an epoch: windows of a text at random places, each with the token that follows.

    Shapes:
        ids: (pos,); a batch: (size, width + 1)

    Args:
        steps: batches in an epoch.
        seed: together with the epoch's number it determines the places.
    """

    def batches(epoch: int) -> Iterator[Tensor]:
        rng = np.random.default_rng((seed, epoch))
        for _ in range(steps):
            starts = torch.from_numpy(rng.integers(0, len(ids) - width, size))
            yield ids[starts[:, None] + torch.arange(width + 1)]

    return batches


def even_windows(ids: Tensor, width: int, number: int) -> Tensor:
    """Return windows of a text at even distances, each with the token that follows.

    Shapes:
        ids: (pos,); returns: (number, width + 1)
    """
    starts = torch.linspace(0, len(ids) - width - 1, number).long()
    return ids[starts[:, None] + torch.arange(width + 1)]
