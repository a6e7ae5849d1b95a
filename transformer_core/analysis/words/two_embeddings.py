"""Two embeddings of one corpus: counted (co-occurrence and SVD) and trained (a tiny BERT guesses hidden words).

Positive pointwise mutual information and its SVD: Levy and Goldberg 2014, sections 3.3 and 4.2; SVD of counts:
Deerwester et al. 1990; the two ways compared: Baroni et al. 2014, Levy, Goldberg and Dagan 2015.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.words.tiny_bert import Corpus, one_corpus, trained_vectors
from transformer_core.analysis.words.vocabulary import find, unit_rows
from transformer_core.analysis.words.vocabulary_map import laid_out
from transformer_core.config import require_range
from transformer_core.layout.neighbours import squared_distances, trustworthiness
from transformer_core.text import SPECIAL_TOKENS
from transformer_core.text.tokenizer import Tokenizer
from transformer_core.training.corpora.grammar import Language

WEIGHT_OF_SIZES = 0.5  # U S^p: symmetric SVD (Levy and Goldberg 2014, section 4.2); p: Levy et al. 2015


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
    """Factorise a symmetric matrix, the greatest singular value first.

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
    """Keep the first axes only: U S^0.5, a vector of `dimension` numbers per word.

    Shapes:
        vectors: (word, axis); values: (axis,); returns: (word, dimension)

    Raises:
        ValueError: there are not so many axes.
    """
    if not 1 <= dimension <= len(values):
        raise ValueError(f"dimension={dimension} must be from 1 to {len(values)}, the number of words")
    return vectors[:, :dimension] * values[:dimension] ** WEIGHT_OF_SIZES


N_SPECIAL = len(SPECIAL_TOKENS)
MOST_WINDOW = 10


@dataclass(frozen=True, eq=False)
class WordSpace:
    """The words of the corpus as vectors, and a word's nearest.

    Shapes:
        vectors: (word, dimension); xy: (word, 2); neighbours: (k,), places in `labels`; cosine: (k,)

    Args:
        labels: every word, the most frequent first.
        kinds: of each word, what the grammar that wrote the corpus uses it for; see tiny_bert.py.
        xy: by PCA of unit vectors.
        trustworthiness: of that picture.
        kept: counted, the share of the squared singular values that the dimensions keep; trained, None.
        losses: trained, nats a hidden word over the first and the last tenth of the steps; counted, None.
        seconds: trained, of wall-clock time; counted, None.
    """

    labels: tuple[str, ...]
    kinds: tuple[str, ...]
    vectors: np.ndarray
    xy: np.ndarray
    neighbours: np.ndarray
    cosine: np.ndarray
    trustworthiness: float
    kept: float | None = None
    losses: tuple[float, float] | None = None
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far two spaces agree on who is near.

    Shapes:
        overlap: (word,), share of each word's k nearest that both spaces name

    Args:
        mean: over all words.
        chance: what two random choices of k words would share on average.
        word: that one word's share.
    """

    overlap: np.ndarray
    mean: float
    chance: float
    word: float


@functools.cache
def _singular(corpus: Corpus, window: int) -> tuple[Tensor, Tensor]:
    return singular_vectors(positive_pmi(count_pairs(corpus.rows, corpus.tokenizer.vocab_size, window=window)))


def _counted(language: Language, window: int, dimension: int) -> tuple[Corpus, Tensor, float]:
    require_range("window", window, 1, MOST_WINDOW)
    corpus = one_corpus(language)
    vectors, values = _singular(corpus, window)
    kept = float(values[:dimension].square().sum() / values.square().sum())
    return corpus, truncated(vectors, values, dimension)[N_SPECIAL:].float(), kept


def _nearest(vectors: Tensor, k: int) -> Tensor:
    """Return the places of each word's k nearest by cosine: (word, k)."""
    unit = unit_rows(vectors)
    return (unit @ unit.T).fill_diagonal_(-2.0).topk(k, dim=1).indices


def _space(corpus: Corpus, vectors: Tensor, word: str, k: int, **facts) -> WordSpace:
    place = place_of(corpus.tokenizer, word)
    unit = unit_rows(vectors)
    cosine = unit @ unit[place]
    near = _nearest(vectors, k)[place]
    distances = squared_distances(unit)
    xy, _ = laid_out(unit, distances, "pca")
    trusted = trustworthiness(unit, xy, distances=distances)
    labels = corpus.tokenizer.vocabulary()[N_SPECIAL:]
    kinds = corpus.kinds[N_SPECIAL:]
    return WordSpace(labels, kinds, vectors.numpy(), xy.numpy(), near.numpy(), cosine[near].numpy(), trusted, **facts)


def place_of(tokenizer: Tokenizer, word: str) -> int:
    """Return a word's place among the words of the corpus; ValueError where it is not one of them."""
    found = find(tokenizer, word)
    if not found.known or len(found.ids) != 1 or found.ids[0] < N_SPECIAL:
        count = tokenizer.vocab_size - N_SPECIAL
        raise ValueError(f"word={word[:40]!r} must be one of the {count} words of the corpus")
    return found.ids[0] - N_SPECIAL


def counted_space(*, language: Language, window: int, dimension: int, word: str, k: int = 10) -> WordSpace:
    """Count co-occurrences within a window, factorise them, and return the words' vectors and a word's nearest.

    Args:
        language: of the built-in reviews.
        window: places to each side, up to 10.
        dimension: singular vectors that are kept.
        word: whose neighbours are asked for.
        k: how many.

    Raises:
        ValueError: a number is out of range, or the word is not in the corpus.
    """
    corpus, vectors, kept = _counted(language, window, dimension)
    return _space(corpus, vectors, word, k, kept=kept)


def trained_space(*, language: Language, dimension: int, word: str, k: int = 10) -> WordSpace:
    """Train a tiny BERT on the same texts, once for each dimension, and return its embedding matrix likewise.

    Args:
        language: of the built-in reviews.
        dimension: of the embedding, one of tiny_bert.DIMENSIONS.
        word: whose neighbours are asked for.
        k: how many.

    Raises:
        ValueError: as counted_space.
    """
    corpus, trained = one_corpus(language), trained_vectors(language, dimension)
    facts = {"losses": trained.losses, "seconds": trained.seconds}
    return _space(corpus, trained.vectors[N_SPECIAL:], word, k, **facts)


def agreement(*, language: Language, window: int, dimension: int, word: str, k: int = 10) -> Agreement:
    """Return how many of each word's nearest the counted and the trained space share.

    Raises:
        ValueError: as counted_space and trained_space.
    """
    corpus, counted, _ = _counted(language, window, dimension)
    trained = trained_vectors(language, dimension).vectors[N_SPECIAL:]
    shared = (_nearest(counted, k)[:, :, None] == _nearest(trained, k)[:, None, :]).any(2).float().mean(1)  # (word,)
    place = place_of(corpus.tokenizer, word)
    return Agreement(shared.numpy(), float(shared.mean()), k / (len(shared) - 1), float(shared[place]))
