"""Rank correlation: do two measures put the same things first?

Spearman 1904; ties get their mean rank.
"""

from dataclasses import dataclass

import numpy as np

SHUFFLES = 2_000
FEWEST = 4
CLOSE, LOOSE = 0.7, 0.3


@dataclass(frozen=True)
class RankCorrelation:
    """How far two measures agree on an order.

    Args:
        rho: from -1 (reversed) over 0 to 1 (the same order); not a number where it is undefined.
        chance: the share of random orders with a rho at least as far from 0, from 2,000 seeded shuffles.
        count: how many things were ranked.
    """

    rho: float
    chance: float
    count: int


def agreement_word(correlation: float) -> str:
    """Return how well two measures with this correlation, of values or of ranks, agree: close, loose or none."""
    return "close" if correlation >= CLOSE else "loose" if correlation >= LOOSE else "none"


def ranks(values: np.ndarray) -> np.ndarray:
    """Return each value's rank from 1, equal values sharing the mean of theirs.

    Shapes:
        values, returns: (thing,)
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def rank_correlation(first: np.ndarray, second: np.ndarray, *, seed: int = 0) -> RankCorrelation:
    """Return Spearman's rho between two measures of the same things; those where either is not finite are left out.

    Fewer than 4 things, or a measure that is the same for all, have no rho.

    Shapes:
        first, second: (thing,)

    Args:
        seed: of the shuffles.

    Raises:
        ValueError: the measures differ in length.
    """
    if first.shape != second.shape:
        raise ValueError(f"first and second have shapes {first.shape} and {second.shape}; both must be of one length")
    both = np.isfinite(first) & np.isfinite(second)
    count = int(both.sum())
    a, b = (_standard(ranks(values[both].astype(np.float64))) for values in (first, second))
    if count < FEWEST or not a.any() or not b.any():
        return RankCorrelation(float("nan"), float("nan"), count)
    rho = float(a @ b)
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.broadcast_to(b, (SHUFFLES, count)), axis=1)  # (shuffle, thing)
    chance = float((np.abs(shuffled @ a) >= abs(rho) - 1e-12).mean())
    return RankCorrelation(rho, chance, count)


def pearson(one: np.ndarray, other: np.ndarray) -> float:
    """Return Pearson's correlation of two measures of the same things, nan where one of them is the same for all.

    Shapes:
        one, other: (thing,)
    """
    if one.size < 2 or not one.std() or not other.std():
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _standard(ranked: np.ndarray) -> np.ndarray:
    centred = ranked - ranked.mean() if ranked.size else ranked
    length = np.sqrt((centred**2).sum())
    return centred / length if length > 0 else np.zeros_like(centred)
