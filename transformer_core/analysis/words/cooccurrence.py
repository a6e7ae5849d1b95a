"""Counting company: words as vectors of what stands near them, with no gradient anywhere.

Positive pointwise mutual information and its SVD: Levy and Goldberg 2014, sections 3 and 5; SVD of counts: Deerwester
et al. 1990. Read next: two_embeddings.py.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

WEIGHT_OF_SIZES = 0.5  # of the singular values in the vectors: U S^p, p of Levy and Goldberg 2014, section 5.3


def count_pairs(rows: Sequence[Sequence[int]], vocab_size: int, *, window: int) -> Tensor:
    """Count how often two words stand at most `window` places apart in one text; every pair counts both ways.

    Shapes:
        returns: (word, word), float64, symmetric

    Args:
        rows: the ids of each text.
        vocab_size: ids run from 0 to vocab_size - 1.
        window: places to each side.

    Raises:
        ValueError: there are no texts, the window is less than 1, or an id is out of range.
    """
    if not rows:
        raise ValueError("rows=() must hold at least one text")
    if window < 1:
        raise ValueError(f"window={window} must be at least 1")
    lengths = np.fromiter(map(len, rows), int, len(rows))
    ids = np.fromiter((id_ for row in rows for id_ in row), int, int(lengths.sum()))
    if ids.size and not (ids.min() >= 0 and ids.max() < vocab_size):
        raise ValueError(f"rows hold ids from {ids.min()} to {ids.max()}; they must be from 0 to {vocab_size - 1}")
    text = np.repeat(np.arange(len(rows)), lengths)  # which text each place belongs to
    counts = np.zeros(vocab_size * vocab_size)
    for apart in range(1, min(window, int(lengths.max())) + 1):
        together = text[:-apart] == text[apart:]
        pairs = ids[:-apart][together] * vocab_size + ids[apart:][together]
        counts += np.bincount(pairs, minlength=vocab_size * vocab_size)
    ahead = torch.from_numpy(counts).view(vocab_size, vocab_size)
    return ahead + ahead.T


def positive_pmi(counts: Tensor) -> Tensor:
    """Return max(0, log P(w, c) / (P(w) P(c))): how much more often two words meet than chance would have it, in nats.

    Pairs that never meet, and words that occur nowhere, have 0 (Levy and Goldberg 2014, section 3.3).

    Shapes:
        counts, returns: (word, word)
    """
    total, words = counts.sum(), counts.sum(1)  # of all pairs, of each word
    chance = torch.outer(words, words) / total.clamp(min=1.0)
    return torch.where(counts > 0, (counts / chance.clamp(min=1e-300)).log(), 0.0).clamp(min=0.0)


def singular_vectors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Take a symmetric matrix apart, the greatest singular value first.

    For a symmetric matrix the singular values are the sizes of the eigenvalues, which are found in half the time.

    Shapes:
        matrix: (word, word); returns: vectors (word, axis), values (axis,)
    """
    values, vectors = torch.linalg.eigh(matrix)
    order = values.abs().argsort(descending=True)
    vectors = vectors[:, order]
    furthest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))  # (1, axis): the same signs on every machine
    return vectors * torch.where(furthest < 0, -1.0, 1.0), values.abs()[order]


def truncated(vectors: Tensor, values: Tensor, dimension: int) -> Tensor:
    """Keep the first axes only: U S^0.5, a vector of `dimension` numbers a word.

    Shapes:
        vectors: (word, axis); values: (axis,); returns: (word, dimension)

    Raises:
        ValueError: there are not so many axes.
    """
    if not 1 <= dimension <= len(values):
        raise ValueError(f"dimension={dimension} must be from 1 to {len(values)}, the number of words")
    return vectors[:, :dimension] * values[:dimension] ** WEIGHT_OF_SIZES
