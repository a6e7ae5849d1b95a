"""Entropy: over how many positions a head spreads each of its looks.

Shannon 1948, in nats; for attention: Clark et al. 2019, section 3.2. Read next: flow.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.attention.heads import stacked_weights
from transformer_core.analysis.reading import read
from transformer_core.checkpoints import Bundle
from transformer_core.text import Encoding


@dataclass(frozen=True, eq=False)
class Entropies:
    """How broadly each head looks, in nats.

    Shapes:
        heads: (layer, head), the mean over tokens; tokens: (layer, head, query_pos)
        shares: (layer, head), heads divided by the maximum

    Args:
        greatest: ln n, the entropy of a head that looks at all n tokens alike; typed padding does not count.
    """

    heads: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray
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
        bundle: a classifier.
        n_tokens: how many tokens of the text are read at most.

    Raises:
        ValueError: an error of read.
    """
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    weights = stacked_weights(read(bundle, encoding, sites=("*.self_attention.weights",)).trace)
    real = real_positions(encoding, bundle.config.pad_id)
    tokens = entropy(weights)  # (layer, head, query_pos)
    greatest = float(np.log(max(int(real.sum()), 2)))
    heads = tokens[..., real].mean(-1)
    return Entropies(heads, tokens, heads / greatest, greatest)
