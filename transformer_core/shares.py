"""Shares that were counted and means of a few runs: how far they can be trusted, and whether two differ.

Intervals of a share: Wilson 1927; of a difference: percentiles of resampled texts (Efron 1979); of the mean of a few
runs: Student 1908; the sign test is exact.
"""

import math
from dataclasses import dataclass

import numpy as np

SIDE = 1.959964  # of the normal distribution, for an interval of 95 %
SIDES = (2.5, 97.5)
RESAMPLED = 2_000
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # 95 %, by count
SIGNIFICANCE = 0.05  # the sign test's chance below which two shares are told apart


def wilson(right: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the 95 % interval of a share that was right in so many of counts; nan where that is 0.

    Shapes:
        right, counts, returns: (bin,)
    """
    n = np.where(counts > 0, counts, np.nan)
    share, spread = right / n, SIDE**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(share * (1 - share) * spread + spread**2 / 4) / (1 + spread)
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def interval(share: float, count: int) -> tuple[float, float]:
    """Return the bounds of one share of so many with 95 % confidence, as of wilson."""
    low, high = wilson(np.array([share * count]), np.array([count]))
    return float(low[0]), float(high[0])


def mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean of a few values and the bounds of Student's interval of 95 %: mean ± t s / √n.

    Shapes:
        values: (value,), at most 10; nan stands for a missing one

    Returns:
        Mean, low and high; the bounds are nan for fewer than two values, all three where there is none.
    """
    there = values[~np.isnan(values)]
    if not len(there):
        return math.nan, math.nan, math.nan
    mean = float(there.mean())
    half = STUDENT[len(there)] * float(there.std(ddof=1)) / math.sqrt(len(there)) if len(there) > 1 else math.nan
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class Paired:
    """The same texts answered twice.

    Args:
        moved: the share of right answers, second minus first; low, high: the bounds of 95 % of resampled texts.
        better, worse: how many texts have more, and fewer, right answers the second time.
        chance: of so uneven a split of those, were each as likely to get better as worse; 1 where there is none.
    """

    moved: float
    low: float
    high: float
    better: int
    worse: int
    chance: float

    @property
    def is_significant(self) -> bool:
        """Whether the sign test tells the two apart."""
        return self.chance < SIGNIFICANCE


def paired(first: np.ndarray, second: np.ndarray, counts: np.ndarray) -> Paired:
    """Compare how many answers were right, text by text.

    Shapes:
        first, second, counts: (text,), right answers, and how many were asked for
    """
    moved = second - first
    bounds = np.percentile(_resampled(moved, counts), SIDES)
    better, worse = int((moved > 0).sum()), int((moved < 0).sum())
    split = better + worse
    tail = sum(math.comb(split, few) for few in range(min(better, worse) + 1)) / 2**split
    share = float(moved.sum() / counts.sum())
    return Paired(share, min(float(bounds[0]), share), max(float(bounds[1]), share), better, worse, min(1.0, 2 * tail))


def share_interval(right: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Return the bounds of the share of right answers with 95 % confidence: Wilson's where each text is asked for one,
    else those of resampled texts, since the answers to one text depend on each other.

    Shapes:
        right, counts: (text,)
    """
    if (counts == 1).all():
        return interval(float(right.mean()), len(right))
    low, high = np.percentile(_resampled(right, counts), SIDES)
    return float(low), float(high)


def ratio_bounds(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the bounds of sum over sum, of many ratios at once, of 95 % of resampled texts; nan where nothing counts.

    Shapes:
        sums: (text, ratio); counts: the same, or (text,); returns: (2, ratio)
    """
    counts = np.broadcast_to(counts if counts.ndim > 1 else counts[:, None], sums.shape)
    drawn = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLED)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = (drawn @ sums) / (drawn @ counts)  # (draw, ratio)
    bounds = np.full((2, sums.shape[1]), np.nan)
    for place, values in enumerate(ratios.T):
        if (there := values[np.isfinite(values)]).size:
            bounds[:, place] = np.percentile(there, SIDES)
    return bounds


def _resampled(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    rows = np.random.default_rng(0).integers(len(sums), size=(RESAMPLED, len(sums)))
    return sums[rows].sum(-1) / counts[rows].sum(-1)
