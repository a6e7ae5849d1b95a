"""Whether measures of what a verdict rests on agree, over many reviews.

Read next: shuffling.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.encoder.measures import MEASURES, first_words, pairs_of, rank_matrix, values_of
from transformer_core.analysis.positions.order_cases import best_language
from transformer_core.bundle import Bundle
from transformer_core.training.corpora.reviews import reviews

MOST_REVIEWS = 60
STEPS = 8


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far the measures agree on held-out reviews of the built-in corpus.

    Shapes:
        rho: (measure, measure), the mean over reviews; spread: the standard deviation over reviews
        same_first: (measure, measure), the share of reviews of which both put the same word first
        mean_by_review: (review,), the mean over pairs

    Args:
        names: of the measures.
        language: of the reviews, the one that the model knows best.
        reviews: how many.
        mean_rho: over pairs and reviews.
    """

    names: tuple[str, ...]
    rho: np.ndarray
    spread: np.ndarray
    same_first: np.ndarray
    mean_by_review: np.ndarray
    language: str
    reviews: int
    mean_rho: float


def agreement_on_reviews(*, bundle: Bundle, count: int) -> Agreement:
    """Measure each of the first held-out reviews in six ways and average how far any two measures agree.

    Args:
        bundle: a classifier.
        count: how many reviews, from 1 to 60.

    Raises:
        ValueError: count is outside its range, or the bundle is no classifier.
    """
    if not 1 <= count <= MOST_REVIEWS:
        raise ValueError(f"count={count} must be from 1 to {MOST_REVIEWS}")
    language = best_language(bundle.tokenizer)
    texts = [example.text for example in reviews(language, train=0, held_out=count + count % 2)[1][:count]]
    rhos, same = [], []
    baseline = "zero" if bundle.tokenizer.mask_id is None else "mask"
    for text in texts:
        encoding = bundle.tokenizer.encode(text, max_len=bundle.config.max_len)
        values, _ = values_of(bundle, text, len(encoding), steps=STEPS, baseline=baseline)
        words = ~np.array(encoding.special)
        first = first_words(values, words)
        rhos.append(rank_matrix(values[:, words]))
        same.append((first[:, None] == first[None, :]) & (first >= 0))
    stacked = np.stack(rhos)  # (review, measure, measure)
    return Agreement(
        MEASURES,
        _mean(stacked),
        stacked.std(0),
        np.mean(same, axis=0),
        np.array([float(_mean(row)) for row in pairs_of(stacked)]),
        language,
        count,
        float(_mean(pairs_of(stacked).ravel())),
    )


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis of what is a number; nan where nothing is."""
    there = np.isfinite(values)
    return np.where(there, values, 0.0).sum(0) / np.where(there.any(0), there.sum(0), np.nan)
