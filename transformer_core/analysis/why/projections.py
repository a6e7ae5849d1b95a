"""Why Q, K and V? Without projections a vector scores highest with itself, the more so the longer it is.

Vaswani et al. 2017, section 3.2.2; that x . x is the greatest product among vectors of one length is the
inequality of Cauchy and Schwarz.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

from transformer_core.analysis.why.sentence import see
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice
from transformer_core.layers.attention import dot_product_scores

Vectors = Literal["tokens", "embedded", "read"]
REACHES = np.linspace(0.0, 1.5, 31)


@dataclass(frozen=True, eq=False)
class Unprojected:
    """Attention without projections on one sentence, against a trained layer's.

    Shapes:
        weights, trained: (query_pos, key_pos), trained is the mean over heads
        shares: (reach,), mean weight on the diagonal when the vectors are `reaches` times as long
        trained_shares: (head,)

    Args:
        share: mean weight of a token on itself at the reach asked for.
        won: share of tokens whose greatest weight is their own.
        trained_share, trained_won: the same of the trained layer, over all heads.
        even: 1 / n, the share that even weights would give.
    """

    labels: tuple[str, ...]
    weights: np.ndarray
    trained: np.ndarray
    reaches: np.ndarray
    shares: np.ndarray
    trained_shares: np.ndarray
    share: float
    won: float
    trained_share: float
    trained_won: float
    even: float


def _diagonal(weights: torch.Tensor, real: torch.Tensor) -> tuple[float, float]:
    """Return the mean weight on the diagonal and how often it is the greatest, of tokens that may be attended to."""
    weights = weights[..., real, :]
    places = torch.arange(len(real))[real]
    own = weights[..., torch.arange(len(places)), places]
    return float(own.mean()), float((own >= weights.amax(-1)).float().mean())


def without_projections(
    *, bundle: Bundle, text: str, n_tokens: int, layer: int, vectors: str, reach: float
) -> Unprojected:
    """Let a sentence's vectors attend by softmax(x x^T / sqrt(d_model)).

    Args:
        layer: whose trained weights are laid beside it.
        vectors: "tokens" (embeddings alone), "embedded" (with positions), "read" (as the layer reads them).
        reach: what the vectors are multiplied by; 1 leaves them as the model has them.

    Raises:
        ValueError: unknown vectors, there is no such layer, or as see.
    """
    require_choice("vectors", vectors, get_args(Vectors))
    sight = see(bundle, text, n_tokens)
    seen = sight.layer(layer)
    x = {"tokens": sight.tokens, "embedded": sight.embedded, "read": seen.x}[vectors]
    real = seen.allowed.any(0)

    def weights_at(factor: float) -> torch.Tensor:
        return seen.weights_of(dot_product_scores(factor * x, factor * x))  # (query_pos, key_pos)

    weights = weights_at(reach)
    share, won = _diagonal(weights, real)
    trained_share, trained_won = _diagonal(seen.weights, real)
    return Unprojected(
        sight.labels,
        weights.numpy(),
        seen.weights.mean(0).numpy(),
        REACHES,
        np.array([_diagonal(weights_at(float(factor)), real)[0] for factor in REACHES]),
        np.array([_diagonal(head, real)[0] for head in seen.weights]),
        share,
        won,
        trained_share,
        trained_won,
        1 / int(real.sum()),
    )
