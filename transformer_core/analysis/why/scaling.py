"""Why divide by sqrt(d_k)? The spread of q . k, what a softmax makes of it, and the gradient that is left.

Vaswani et al. 2017, section 3.2.1 and footnote 4.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.attention.heads import entropy
from transformer_core.analysis.timing import log_log_slope
from transformer_core.analysis.why.sentence_attention import sentence_attention
from transformer_core.layers.attention import dot_product_scores
from transformer_core.prompt import Prompt

WIDTHS = tuple(2**power for power in range(10))  # 1 to 512
N_QUERIES, N_KEYS = 1024, 16


@dataclass(frozen=True, eq=False)
class Spread:
    """What the width of a head does to scores, for vectors of independent N(0, 1) entries.

    Shapes:
        widths, variance, entropy, gradient, greatest and the same _divided: (width,)
        weights, weights_divided: (width, key), of one query

    Args:
        variance: of q . k, and of q . k / sqrt(d_k).
        entropy: of the weights, mean over queries, in nats.
        gradient: Frobenius norm of the softmax's Jacobian, mean over queries.
        greatest: the greatest weight, mean over queries.
        slope: of log variance against log d_k; 1 means that the variance is proportional to d_k.
    """

    widths: np.ndarray
    variance: np.ndarray
    variance_divided: np.ndarray
    entropy: np.ndarray
    entropy_divided: np.ndarray
    gradient: np.ndarray
    gradient_divided: np.ndarray
    greatest: np.ndarray
    greatest_divided: np.ndarray
    weights: np.ndarray
    weights_divided: np.ndarray
    slope: float
    n_queries: int
    n_keys: int


def jacobian_norm(weights: Tensor) -> Tensor:
    """Return the Frobenius norm of diag(p) - p p^T, the softmax's derivative, over the last axis."""
    squares, cubes = weights.square().sum(-1), weights.pow(3).sum(-1)
    return (squares - 2 * cubes + squares.square()).clamp(min=0).sqrt()


def spread_by_width(*, seed: int) -> Spread:
    """Measure q . k for seeded random vectors, cut to their first d_k entries."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(1, N_QUERIES, 1, max(WIDTHS), generator=generator)
    key = torch.randn(1, N_QUERIES, N_KEYS, max(WIDTHS), generator=generator)
    found: dict[str, list] = {name: [] for name in ("variance", "entropy", "gradient", "greatest", "weights")}
    for width in WIDTHS:
        for scale in (False, True):
            scores = dot_product_scores(query[..., :width], key[..., :width], scale=scale)[0, :, 0]  # (query, key)
            weights = scores.double().softmax(-1)
            found["variance"].append(float(scores.var()))
            found["entropy"].append(float(entropy(weights.numpy()).mean()))
            found["gradient"].append(float(jacobian_norm(weights).mean()))
            found["greatest"].append(float(weights.amax(-1).mean()))
            found["weights"].append(weights[0].tolist())
    measured: dict[str, np.ndarray] = {}
    for name, values in found.items():
        measured |= {name: np.array(values[::2]), f"{name}_divided": np.array(values[1::2])}
    widths = np.array(WIDTHS)
    slope = log_log_slope(widths, measured["variance"])
    return Spread(widths=widths, slope=slope, n_queries=N_QUERIES, n_keys=N_KEYS, **measured)


@dataclass(frozen=True, eq=False)
class OwnSpread:
    """The same, measured in every head of a trained model on one sentence.

    Shapes:
        layers, heads, variance, variance_divided, variance_wide, entropy, entropy_undivided, entropy_wide: (head of the
            model,)

    Args:
        variance, variance_divided, variance_wide: of the head's q . k over all pairs that may attend: as it is, divided
            by sqrt(d_head), and by sqrt(d_model), as some texts print it.
        entropy: of the weights with the division by sqrt(d_head), mean over queries, in nats.
        entropy_undivided, entropy_wide: of the weights that the same q and k give without it, and by sqrt(d_model).
        largest_entropy: log n, of even weights on every token.
    """

    layers: np.ndarray
    heads: np.ndarray
    variance: np.ndarray
    variance_divided: np.ndarray
    variance_wide: np.ndarray
    entropy_undivided: np.ndarray
    entropy: np.ndarray
    entropy_wide: np.ndarray
    d_head: int
    d_model: int
    largest_entropy: float


def spread_of_own_heads(*, prompt: Prompt) -> OwnSpread:
    """Measure the spread of q . k in every head of a model.

    Raises:
        ValueError: as sentence_attention.
    """
    rows, d_model = [], prompt.bundle.config.d_model
    for number, layer in enumerate(sentence_attention(prompt).layers):
        products = dot_product_scores(layer.query, layer.key, scale=False)  # (head, query_pos, key_pos)
        scaled = [products / math.sqrt(width) for width in (1, layer.d_head, d_model)]
        spread = [entropy(layer.weights_of(scores + layer.bias).numpy()).mean(-1) for scores in scaled]
        for head in range(len(products)):
            variances = [float(scores[head][layer.allowed].var(correction=0)) for scores in scaled]
            rows.append((number, head, *variances, *(float(values[head]) for values in spread)))
    layers, heads, *measured = (np.array(column) for column in zip(*rows, strict=True))
    even = math.log(int(layer.allowed.any(0).sum()))
    return OwnSpread(layers, heads, *measured, d_head=layer.d_head, d_model=d_model, largest_entropy=even)
