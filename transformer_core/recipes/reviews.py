"""Reviews for training: what is set aside, and the crops of long reviews that a small model learns from.

Data: Maas et al. 2011. Read next: sentiment_settings.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.text import CLS_ID, PAD_ID, SEP_ID, Tokenizer
from transformer_core.training.batching import LabelledBatch, bucketed, padded
from transformer_core.training.examples import Example, distinct, take

ENCODED_AT_ONCE = 512
SENTENCE_STOPS = (".", "!", "?")


def set_aside(examples: Iterable[Example], per_class: int, *, seed: int) -> tuple[list[Example], list[Example]]:
    """Split examples into those to train on and a balanced part that is never trained on, both in random order.

    Reviews that say the same but for case and blanks count once: the first is kept, so that no text is in both parts.

    Args:
        per_class: examples of each class to set aside.
        seed: of the choice.

    Returns:
        The examples to train on, and those set aside.

    Raises:
        ValueError: a class has too few examples to leave any for training.
    """
    unique = distinct(examples)
    counts = Counter(example.label for example in unique)
    for label, count in sorted(counts.items()):
        if count <= per_class:
            raise ValueError(f"label {label} has {count} different reviews; to set {per_class} aside, more are needed")
    return take(unique, dict.fromkeys(counts, per_class), seed=seed)


@dataclass(frozen=True)
class Crops:
    """How a review is cut for one epoch.

    Args:
        opening: probability of its first tokens, as many as fit.
        window: probability of a stretch of as many tokens from anywhere in it.
        longest: whole sentences, from 1 to this many, that are cut out in the remaining cases: what people type is
            short, and reviews are not.
    """

    opening: float
    window: float
    longest: int = 3

    def cut(self, ids: np.ndarray, sentence_ends: np.ndarray, room: int, rng: np.random.Generator) -> np.ndarray:
        """Cut (pos,) ids to at most `room` of them; sentence_ends (n,) are the places where sentences end."""
        way = rng.random()
        if way < self.opening:
            return ids[:room]
        if way < self.opening + self.window:
            start = int(rng.integers(0, max(len(ids) - room, 0) + 1))
            return ids[start : start + room]
        bounds = np.union1d(sentence_ends, (0, max(len(ids), 1)))
        first = int(rng.integers(0, len(bounds) - 1))
        last = min(first + int(rng.integers(1, self.longest + 1)), len(bounds) - 1)
        return ids[bounds[first] : bounds[last]][:room]


class ReviewBatches:
    """The batches of any epoch: the same number gives the same crops in the same order.

    Args:
        rows: ids of each review, without special tokens.
        labels: class numbers of the reviews.
        tokenizer: that made the rows; it knows how sentences end.
        crops: how to cut.
        max_len: tokens a crop has at most, [CLS] and [SEP] included.
        batch_size: reviews a batch.
        seed: with the epoch's number, it fixes every choice.
    """

    def __init__(
        self,
        rows: Sequence[np.ndarray],
        labels: Sequence[int],
        tokenizer: Tokenizer,
        crops: Crops,
        *,
        max_len: int,
        batch_size: int,
        seed: int,
    ) -> None:
        self._rows, self._labels, self._crops = rows, np.asarray(labels), crops
        self._max_len, self._batch_size, self._seed = max_len, batch_size, seed
        stops = [number for number in map(tokenizer.id_of, SENTENCE_STOPS) if number is not None]
        self._sentence_ends = [np.flatnonzero(np.isin(row, stops)) + 1 for row in rows]

    def __len__(self) -> int:
        return -(-len(self._rows) // self._batch_size)

    def __call__(self, epoch: int) -> Iterator[LabelledBatch]:
        """Yield the batches of an epoch."""
        rng = np.random.default_rng((self._seed, epoch))
        room = self._max_len - 2
        crops = [self._crops.cut(*pair, room, rng) for pair in zip(self._rows, self._sentence_ends, strict=True)]
        for places in bucketed([len(crop) for crop in crops], self._batch_size, rng):
            rows = [[CLS_ID, *crops[place], SEP_ID] for place in places]
            labels = self._labels[places]
            yield LabelledBatch(padded(rows, PAD_ID), torch.from_numpy(labels))


def encode_rows(tokenizer: Tokenizer, examples: Sequence[Example]) -> list[np.ndarray]:
    """Return the ids of each text, in full and without [CLS] and [SEP]."""
    rows = []
    for start in range(0, len(examples), ENCODED_AT_ONCE):
        texts = [example.text for example in examples[start : start + ENCODED_AT_ONCE]]
        rows += [np.array(encoding.ids[1:-1], dtype=np.int32) for encoding in tokenizer.encode_batch(texts)]
    return rows
