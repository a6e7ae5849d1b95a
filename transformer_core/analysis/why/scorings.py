"""Why the dot product? Against additive attention, in time and in the spread of its scores, as heads grow wider.

Vaswani et al. 2017, section 3.2.1; additive: Bahdanau et al. 2015, appendix A.1.2.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.timing import log_log_slope, sweep
from transformer_core.layers.attention import AdditiveScores, dot_product_scores

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
N_VECTORS = 64


@dataclass(frozen=True, eq=False)
class ScoringTimes:
    """How long the scores of one head take.

    Shapes:
        widths, dot_product, additive: (width,), in seconds, the least of several calls on one thread

    Args:
        dot_product_slope, additive_slope: of log time against log d_k.
        ratio: additive over dot product at the widest head.
        floats: numbers that additive attention must store at the widest head before it sums them.
        spread: of the times, as of Stopwatch.
    """

    widths: np.ndarray
    dot_product: np.ndarray
    additive: np.ndarray
    dot_product_slope: float
    additive_slope: float
    ratio: float
    floats: int
    spread: float


def _vectors(n_vectors: int, width: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, AdditiveScores]:
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, 1, 1, n_vectors, width, generator=generator)
    additive = AdditiveScores(1, width)
    additive.weight.normal_(generator=generator)
    return query, key, additive


@torch.inference_mode()
def time_scorings(*, n_tokens: int, seed: int, measurement: int) -> ScoringTimes:
    """Time both scorings of layers/attention.py on random vectors, for heads of 4 to 512.

    Args:
        n_tokens: queries, and keys.
        measurement: any number; another one measures again.
    """

    def calls(width: int) -> tuple[Callable[[], Tensor], ...]:
        query, key, additive = _vectors(n_tokens, width, seed)
        return lambda: dot_product_scores(query, key), lambda: additive(query, key)

    ((dot_product, additive), spread), widths = sweep(WIDTHS, calls), np.array(WIDTHS)
    return ScoringTimes(
        widths,
        dot_product,
        additive,
        log_log_slope(widths, dot_product),
        log_log_slope(widths, additive),
        float(additive[-1] / dot_product[-1]),
        n_tokens**2 * WIDTHS[-1],
        spread,
    )


@dataclass(frozen=True, eq=False)
class ScoringSpread:
    """Standard deviation of scores between vectors of independent N(0, 1) entries.

    Shapes:
        widths, and all others: (width,)

    Args:
        dot_product: q . k; divided: q . k / sqrt(d_k).
        additive: v . tanh(q + k) with v of N(0, 1) entries; additive_divided: with v of N(0, 1/d_k) entries.
        dot_product_slope, additive_slope: of log deviation against log d_k.
    """

    widths: np.ndarray
    dot_product: np.ndarray
    divided: np.ndarray
    additive: np.ndarray
    additive_divided: np.ndarray
    dot_product_slope: float
    additive_slope: float


@torch.inference_mode()
def spread_of_scorings(*, seed: int) -> ScoringSpread:
    """Measure how far scores spread under both rules, at the same random vectors."""
    rows = []
    for width in WIDTHS:
        drawn = [_vectors(N_VECTORS, width, seed + turn) for turn in range(16)]
        scores = [torch.stack([dot_product_scores(q, k, scale=False) for q, k, _ in drawn])]
        scores.append(torch.stack([score(q, k) for q, k, score in drawn]))
        deviations = [float(each.std()) for each in scores]
        rows.append((deviations[0], deviations[0] / width**0.5, deviations[1], deviations[1] / width**0.5))
    widths, columns = np.array(WIDTHS), np.array(rows).T
    dot_product, divided, additive, additive_divided = columns
    slopes = (log_log_slope(widths, dot_product), log_log_slope(widths, additive))
    return ScoringSpread(widths, dot_product, divided, additive, additive_divided, *slopes)
