"""Tendencies: what each head tends to look at, with the score that supports it.

After Clark et al. 2019, section 3, with one change: a head's mean weight is compared with what a uniform head gives.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from transformer_core.analysis.attention.heads import WEIGHTS, entropy, read_attention, real_positions, stacked_weights
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.text.special import SEP
from transformer_core.training.corpora.reviews import reviews

PLACES = ("previous", "next", "first", "same", "repeated", "marks")
TENDENCIES = (*PLACES, "broad")
NONE = -1
BROAD_FROM = 0.9
MOST_SENTENCES = 200


@dataclass(frozen=True, eq=False)
class Tendencies:
    """What heads look at, over one sentence or many.

    Shapes:
        scores: (layer, head, tendency): for the places, the mean weight on them minus a uniform head's; for "broad",
            the mean entropy as a share of its maximum. Not a number where no sentence has such places
        weights: (layer, head, place), the mean weight itself; uniform: (place,), what a uniform head gives
        by_sentence: (sentence, layer, head, tendency), the scores of each sentence alone
    """

    scores: np.ndarray
    weights: np.ndarray
    uniform: np.ndarray
    by_sentence: np.ndarray


def places_of(encoding: Encoding, real: np.ndarray) -> np.ndarray:
    """Return which keys count as which place for which query: previous, next, first, same, repeated word, marks.

    The first token's own look at itself counts as "same" alone; marks are punctuation and [SEP], but not the query.

    Shapes:
        real: (pos,), False for padding; returns: (place, query_pos, key_pos), boolean
    """
    n = len(encoding)
    ids, here = np.array(encoding.ids), np.eye(n, dtype=bool)
    special = np.array(encoding.special)
    first = np.zeros((n, n), dtype=bool)
    first[:, 0] = True
    word = ~special
    again = (ids[:, None] == ids[None, :]) & word[:, None] & word[None, :] & ~here
    places = [
        np.eye(n, k=-1, dtype=bool),
        np.eye(n, k=1, dtype=bool),
        first & ~here,
        here,
        again,
        is_mark(encoding)[None, :] & ~here,
    ]
    return np.stack(places) & real[:, None] & real[None, :]


def is_mark(encoding: Encoding) -> np.ndarray:
    """Return which tokens are punctuation or [SEP]. # (pos,)"""
    pairs = zip(encoding.tokens, encoding.labels, strict=True)
    return np.array([token == SEP or _is_punctuation(label) for token, label in pairs])


def _is_punctuation(label: str) -> bool:
    return bool(label) and all(unicodedata.category(sign).startswith("P") for sign in label)


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over the queries of one sentence, and how many queries each sum has.

    Shapes:
        weights: (layer, head, place), the sum of the weights on a place; uniform: (place,), of a head that looks at all
            that it may see alike; queries: (place,)
        entropy: (layer, head), the sum of shares of the maximum

    Args:
        rows: queries that see more than one key.
    """

    weights: np.ndarray
    uniform: np.ndarray
    queries: np.ndarray
    entropy: np.ndarray
    rows: int


def seen_by(encoding: Encoding, padding: int, causal: bool) -> np.ndarray:
    """Return which keys each query may see. # (query_pos, key_pos)"""
    real = real_positions(encoding, padding)
    return np.outer(real, real) & np.tri(len(real), k=0 if causal else len(real), dtype=bool)


def tally(weights: np.ndarray, places: np.ndarray, seen: np.ndarray) -> Tally:
    """Sum one sentence's weights over its queries.

    Shapes:
        weights: (layer, head, query_pos, key_pos); places: (place, query_pos, key_pos); seen: (query_pos, key_pos)
    """
    keys = seen.sum(-1)  # (query_pos,)
    places = (places & seen).astype(np.float64)
    asked = places.any(-1)  # (place, query_pos)
    on_places = np.einsum("lhqk,pqk->lhp", weights.astype(np.float64), places, optimize=True)
    uniform = (places.sum(-1) / keys.clip(min=1)).sum(-1)
    several = keys > 1
    shares = entropy(weights)[..., several] / np.log(keys[several])
    return Tally(on_places, uniform, asked.sum(-1).astype(np.float64), shares.sum(-1), int(several.sum()))


def _tally(weights: np.ndarray, encoding: Encoding, padding: int, causal: bool) -> Tally:
    places = places_of(encoding, real_positions(encoding, padding))
    return tally(weights, places, seen_by(encoding, padding, causal))


def _scored(tallies: Sequence[Tally]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, weights and uniform over all queries of these sentences."""
    queries = np.sum([one.queries for one in tallies], axis=0)  # (place,)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.sum([one.weights for one in tallies], axis=0) / queries  # (layer, head, place)
        uniform = np.sum([one.uniform for one in tallies], axis=0) / queries  # (place,)
    rows = max(sum(one.rows for one in tallies), 1)
    broad = np.sum([one.entropy for one in tallies], axis=0) / rows  # (layer, head)
    return np.concatenate([weights - uniform, broad[..., None]], axis=-1), weights, uniform


def tendencies_of(
    weights: Sequence[np.ndarray], encodings: Sequence[Encoding], padding: int, *, causal: bool = False
) -> Tendencies:
    """Score heads on sentences whose weights are known; every query counts the same.

    Shapes:
        weights: one per sentence, (layer, head, query_pos, key_pos)

    Args:
        causal: a query sees only itself and what came before, and so does the uniform head that it is compared with.

    Raises:
        ValueError: there is no sentence.
    """
    if not encodings:
        raise ValueError("encodings=() must hold at least one sentence")
    tallies = [_tally(one, encoding, padding, causal) for one, encoding in zip(weights, encodings, strict=True)]
    scores, mean_weights, uniform = _scored(tallies)
    return Tendencies(scores, mean_weights, uniform, np.stack([_scored([one])[0] for one in tallies]))


def tendencies_of_text(*, prompt: Prompt) -> Tendencies:
    """Score every head on one text.

    Args:
        prompt: to a model of a kind that reads one text.

    Raises:
        ValueError: as read.
    """
    encoding = prompt.encoding
    weights = [stacked_weights(read_attention(prompt.bundle, encoding).trace)]
    return tendencies_of(weights, [encoding], prompt.bundle.config.padding, causal=prompt.bundle.reader.causal)


def tendencies_of_reviews(
    *, bundle: Bundle, language: Literal["en", "zh"], sentences: int = 48, seed: int = 0
) -> Tendencies:
    """Score every head on built-in reviews.

    Args:
        bundle: of a kind that reads one text.
        language: of the reviews.
        sentences: how many reviews, at most 200.
        seed: of the reviews.

    Raises:
        ValueError: an argument is out of its range, or as read.
    """
    require_range("sentences", sentences, 1, MOST_SENTENCES)
    texts = _sample(language, sentences, seed)
    encodings = bundle.tokenizer.encode_batch(texts, max_len=bundle.config.max_len)
    weights = [stacked_weights(read(bundle, encoding, sites=(WEIGHTS,)).trace) for encoding in counted(encodings)]
    return tendencies_of(weights, encodings, bundle.config.padding, causal=bundle.reader.causal)


@lru_cache(maxsize=8)
def _sample(language: Literal["en", "zh"], sentences: int, seed: int) -> tuple[str, ...]:
    _, held_out = reviews(language, train=0, held_out=sentences, seed=seed)
    return tuple(example.text for example in held_out)


def labelled(scores: np.ndarray, threshold: float) -> np.ndarray:
    """Return each head's strongest tendency, as its place in TENDENCIES, or NONE where nothing can be claimed.

    A place is claimed from a score of `threshold` on; "broad" from 0.9 of the maximal entropy on, where no place is.

    Shapes:
        scores: (..., tendency); returns: (...)
    """
    places = np.nan_to_num(scores[..., : len(PLACES)], nan=-1.0)
    best = places.argmax(-1)
    broad = np.where(scores[..., -1] >= BROAD_FROM, len(PLACES), NONE)
    return np.where(places.max(-1) >= threshold, best, broad)


def steadiness(tendencies: Tendencies, threshold: float) -> np.ndarray:
    """Return the share of sentences on which each head has the label that it has over all of them.

    Shapes:
        returns: (layer, head)
    """
    overall = labelled(tendencies.scores, threshold)
    return (labelled(tendencies.by_sentence, threshold) == overall).mean(0)
