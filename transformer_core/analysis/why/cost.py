"""What does attention cost? n^2 d for the scores and n d^2 for the maps, timed here and compared with the counts.

Vaswani et al. 2017, table 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.timing import log_log_slope, sweep
from transformer_core.config import ModelConfig
from transformer_core.layers.attention import dot_product_scores, masked_softmax
from transformer_core.layers.blocks import EncoderBlock
from transformer_core.layers.initialization import initialize

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
WIDTHS = (16, 32, 64, 128, 256, 512)
LATE = 4
LONGEST = 1024


@dataclass(frozen=True, eq=False)
class Cost:
    """How long attention and a whole encoder layer take, as one size grows.

    Shapes:
        sizes, attention, fused, layer, scores, softmax, mixture, attention_count, layer_count: (size,)

    Args:
        attention: softmax(q k^T / sqrt(d)) v of one head, written out, in seconds, the least of several calls on
            one thread.
        fused: the same by torch's scaled_dot_product_attention, which never stores the n x n weights.
        scores, softmax, mixture: attention's three steps one by one, q k^T / sqrt(d), softmax, weights v, in seconds:
            n^2 d, n^2 and n^2 d operations.
        layer: an encoder layer: projections, attention, feed-forward of 4 d, two normalisations.
        attention_count, layer_count: multiplications of the matrix products, from the formulas.
        attention_slope, fused_slope, layer_slope, scores_slope, softmax_slope, mixture_slope: of log time against log
            size, over the four largest sizes.
        attention_count_slope, layer_count_slope: the same of the counts.
        even: the size at which both kinds of work have equally many multiplications, 2 n^2 d = (4 + 8) n d^2, n = 6 d.
        spread: of the times, as of Stopwatch.
    """

    sizes: np.ndarray
    attention: np.ndarray
    fused: np.ndarray
    layer: np.ndarray
    scores: np.ndarray
    softmax: np.ndarray
    mixture: np.ndarray
    attention_count: np.ndarray
    layer_count: np.ndarray
    attention_slope: float
    fused_slope: float
    layer_slope: float
    scores_slope: float
    softmax_slope: float
    mixture_slope: float
    attention_count_slope: float
    layer_count_slope: float
    even: float
    spread: float


def _calls(n_tokens: int, d_model: int, seed: int) -> tuple[Callable[[], Tensor], ...]:
    generator = torch.Generator().manual_seed(seed)
    query, key, value = torch.randn(3, 1, 1, n_tokens, d_model, generator=generator)
    block = EncoderBlock(ModelConfig(vocab_size=1, d_model=d_model, n_heads=1, d_ff=4 * d_model, dropout=0.0))
    initialize(block, generator)
    block.eval()
    scores = dot_product_scores(query, key)
    weights = masked_softmax(scores, some_hidden=False)
    return (
        lambda: masked_softmax(dot_product_scores(query, key), some_hidden=False) @ value,
        lambda: F.scaled_dot_product_attention(query, key, value),
        lambda: block(query[0]),
        lambda: dot_product_scores(query, key),
        lambda: masked_softmax(scores, some_hidden=False),
        lambda: weights @ value,
    )


@torch.inference_mode()
def time_attention(*, along: str, other: int, seed: int, measurement: int) -> Cost:
    """Time attention for growing n at one d, or for growing d at one n.

    Args:
        along: "length" or "width": what grows.
        other: the size that stays: d_model, or n; 1 to 1,024.
        seed: of vectors and weights, which are random: times do not depend on them.
        measurement: any number; another one measures again.

    Raises:
        ValueError: along or other is outside what it may be.
    """
    if along not in ("length", "width") or not 1 <= other <= LONGEST:
        raise ValueError(f"along={along!r} must be 'length' or 'width', and other={other} from 1 to {LONGEST}")
    sizes = np.array(LENGTHS if along == "length" else WIDTHS)

    def shape(size: Any) -> tuple[Any, Any]:
        return (size, other) if along == "length" else (other, size)

    times, spread = sweep(sizes.tolist(), lambda size: _calls(*shape(size), seed))
    n_tokens, d_model = shape(sizes)
    attention_count = 2 * n_tokens**2 * d_model
    columns = [*times, attention_count, attention_count + 12 * n_tokens * d_model**2]
    slopes = [log_log_slope(sizes[-LATE:], column[-LATE:]) for column in columns]
    even = 6.0 * other if along == "length" else other / 6
    return Cost(sizes, *columns, *slopes, even=even, spread=spread)
