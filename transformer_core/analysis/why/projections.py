"""Why Q, K and V? Attention without projections, and with one projection for queries and keys, or for keys and values.

Vaswani et al. 2017, section 3.2.2; that x . x is the greatest product among vectors of one length is the inequality of
Cauchy and Schwarz. Tied queries and keys: Kitaev et al. 2020, section 2. Shared keys and values as in Shazeer 2019 are
another thing: there heads share them, here a key is its own value.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.analysis.short_training import Trial, train_on_reviews
from transformer_core.analysis.why.sentence_attention import LayerAttention, sentence_attention
from transformer_core.bundle import MODELS, Bundle
from transformer_core.config import require_choice, require_index
from transformer_core.layers.attention import dot_product_scores
from transformer_core.layers.initialization import shapes_alone
from transformer_core.prompt import Prompt

Vectors = Literal["rows", "tokens", "embedded", "read"]
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
        norm: mean length of the vectors as they are.
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
    norm: float


def _diagonal(weights: torch.Tensor, real: torch.Tensor) -> tuple[float, float]:
    """Return the mean weight on the diagonal and how often it is the greatest, of tokens that may be attended to."""
    weights = weights[..., real, :]
    places = torch.arange(len(real))[real]
    own = weights[..., torch.arange(len(places)), places]
    return float(own.mean()), float((own >= weights.amax(-1)).float().mean())


def without_projections(*, prompt: Prompt, layer: int, vectors: str, reach: float) -> Unprojected:
    """Let a sentence's vectors attend by softmax(x x^T / sqrt(d_model)).

    Args:
        layer: whose trained weights are shown beside it.
        vectors: "rows" (of the embedding's matrix), "tokens" (these times sqrt(d_model), where the model scales them),
            "embedded" (with positions), "read" (as the layer reads them).
        reach: what the vectors are multiplied by; 1 leaves them as the model has them.

    Raises:
        ValueError: unknown vectors, there is no such layer, or as sentence_attention.
    """
    require_choice("vectors", vectors, get_args(Vectors))
    sight = sentence_attention(prompt)
    seen = sight.layer(layer)
    x = {"rows": sight.rows, "tokens": sight.tokens, "embedded": sight.embedded, "read": seen.x}[vectors]
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
        float(x[real].norm(dim=-1).mean()),
    )


SHARES = np.linspace(0.0, 1.0, 21)


@dataclass(frozen=True, eq=False)
class Tied:
    """One head whose keys move from its own towards its queries.

    Shapes:
        scores, weights, residue: (query_pos, key_pos); residue is (scores - scores^T) / 2
        scores_asymmetry, weights_asymmetry: (share,)
        own, tied: (layer, head), asymmetry of every head's scores with its own keys, and with keys = queries

    Args:
        shares: of the query in the key, 0 the model's own, 1 Q = K.
        asymmetry, of_weights: at the share asked for.
        chance: of scores between as many independent N(0, 1) vectors, seeded.
        diagonal: mean weight of a token on itself at the share asked for.
    """

    labels: tuple[str, ...]
    scores: np.ndarray
    weights: np.ndarray
    residue: np.ndarray
    shares: np.ndarray
    scores_asymmetry: np.ndarray
    weights_asymmetry: np.ndarray
    own: np.ndarray
    tied: np.ndarray
    asymmetry: float
    of_weights: float
    chance: float
    diagonal: float


def asymmetry(matrix: Tensor) -> Tensor:
    """Return |S - S^T| / (2 |S|) by Frobenius norms: 0 for a symmetric matrix, 1 for S = -S^T; of 0 it is 0.

    Shapes:
        matrix: (..., pos, pos); returns: (...)
    """
    residue = torch.linalg.matrix_norm(matrix - matrix.transpose(-2, -1)) / 2
    return residue / torch.linalg.matrix_norm(matrix).clamp(min=1e-30)


def _scores(layer: LayerAttention, share: float) -> Tensor:
    key = torch.lerp(layer.key, layer.query, share)
    return dot_product_scores(layer.query, key) + layer.bias  # (head, query_pos, key_pos)


def tied_query_key(*, prompt: Prompt, layer: int, head: int, share: float, seed: int) -> Tied:
    """Mix a trained head's keys with its queries and measure how symmetric its scores become.

    Mixing the vectors is mixing the projections, since both are linear in what they read.

    Args:
        share: of the query in the key, from 0 to 1.
        seed: of the random vectors that say what chance would give.

    Raises:
        ValueError: there is no such layer or head, or as sentence_attention.
    """
    sight = sentence_attention(prompt)
    seen = sight.layer(layer)
    require_index("head", head, len(seen.query))
    real = seen.allowed.any(0)

    def within(matrix: Tensor) -> Tensor:
        return matrix[..., real, :][..., real]

    def curve(of: list[Tensor]) -> np.ndarray:
        return np.array([float(asymmetry(within(matrix[head]))) for matrix in of])

    scores = [_scores(seen, float(part)) for part in SHARES]
    now = _scores(seen, share)
    weights = seen.weights_of(now)
    pair = torch.randn(2, 1, int(real.sum()), seen.d_head, generator=torch.Generator().manual_seed(seed))
    ends = [torch.stack([asymmetry(within(_scores(each, end))) for each in sight.layers]) for end in (0.0, 1.0)]
    return Tied(
        sight.labels,
        now[head].numpy(),
        weights[head].numpy(),
        ((now[head] - now[head].T) / 2).numpy(),
        SHARES,
        curve(scores),
        curve([seen.weights_of(each) for each in scores]),
        ends[0].numpy(),
        ends[1].numpy(),
        float(asymmetry(within(now[head]))),
        float(asymmetry(within(weights[head]))),
        float(asymmetry(dot_product_scores(pair[0], pair[1])[0])),
        float(within(weights[head]).diagonal().mean()),
    )


@dataclass(frozen=True, eq=False)
class Saved:
    """Parameters of a model with and without a value projection of its own.

    Args:
        own, shared: of all attention layers.
        whole_own, whole_shared: of the whole model.
    """

    own: int
    shared: int
    whole_own: int
    whole_shared: int


def _count(model: nn.Module, part: str) -> int:
    return sum(parameter.numel() for name, parameter in model.named_parameters() if part in name)


def parameters_saved(*, bundle: Bundle) -> Saved:
    """Count the parameters of a model's configuration with share_key_value off and on; nothing is trained."""
    with shapes_alone():
        own, shared = (MODELS[bundle.kind](replace(bundle.config, share_key_value=on)) for on in (False, True))
    counts = [_count(model, part) for part in ("attention.", "") for model in (own, shared)]
    return Saved(*counts)


def train_shared_values(*, language: str, seeds: tuple[int, ...]) -> Trial:
    """Train the same small classifier with values of their own ("own") and with K = V ("shared").

    Raises:
        ValueError: as train_on_reviews.
    """
    return train_on_reviews({"own": {}, "shared": {"share_key_value": True}}, language=language, seeds=seeds)
