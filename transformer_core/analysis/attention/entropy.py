"""Entropy: over how many positions a head spreads each of its looks.

Shannon 1948, in nats; for attention: Clark et al. 2019, section 3.2. Read next: flow.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.attention.heads import stacked_weights
from transformer_core.analysis.reading import is_causal, read
from transformer_core.bundle import Bundle
from transformer_core.text import Encoding


@dataclass(frozen=True, eq=False)
class Entropies:
    """How broadly each head looks, in nats.

    Shapes:
        heads: (layer, head), the mean over tokens; tokens: (layer, head, query_pos)
        shares: (layer, head), the mean over tokens of the share of each token's maximum
        bounds: (query_pos,), the maximum at each token: ln of how many tokens it can look at

    Args:
        greatest: ln n, the entropy of a head that looks at all n tokens alike; typed padding does not count.
    """

    heads: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray
    bounds: np.ndarray
    greatest: float


def entropy(weights: np.ndarray) -> np.ndarray:
    """Return -sum w ln w over the last axis, where 0 ln 0 is 0.

    Shapes:
        weights: (..., key_pos), each row summing to 1; returns: (...)
    """
    weights = np.asarray(weights, dtype=np.float64)
    return -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(-1)


def real_positions(encoding: Encoding, pad_id: int | None) -> np.ndarray:
    """Return which positions are no padding.

    Shapes:
        returns: (pos,), boolean
    """
    return np.array([token_id != pad_id for token_id in encoding.ids])


def head_entropies(*, bundle: Bundle, text: str, n_tokens: int) -> Entropies:
    """Measure the entropy of every head at every token of a text.

    Args:
        bundle: of a kind that reads one text.
        n_tokens: how many tokens of the text are read at most.

    Raises:
        ValueError: an error of read.
    """
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    weights = stacked_weights(read(bundle, encoding, sites=("*.self_attention.weights",)).trace)
    real = real_positions(encoding, bundle.config.pad_id)
    tokens = entropy(weights)  # (layer, head, query_pos)
    greatest = float(np.log(max(int(real.sum()), 2)))
    keys = np.cumsum(real) if is_causal(bundle) else np.full(len(real), real.sum())  # (query_pos,)
    bounds = np.log(np.clip(keys, 2, None))
    several = real & (keys > 1) if (real & (keys > 1)).any() else real
    shares = (tokens / bounds)[..., several].mean(-1)
    return Entropies(tokens[..., real].mean(-1), tokens, shares, np.log(np.clip(keys, 1, None)), greatest)
