"""Attention rollout: how much each token contributes to the sentence's vector, by the attention weights alone.

Abnar and Zuidema 2020, section 3.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.attention.heads import read_attention, real_positions, stacked_weights
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding


@dataclass(frozen=True, eq=False)
class Flow:
    """The rollout of one text, and the last layer's weights beside it.

    Shapes:
        rollout: (query_pos, key_pos), each row summing to 1
        last: (query_pos, key_pos), the last layer's weights, mean over heads
        verdict_rollout, verdict_last: (key_pos,), the rows that the model's prediction is read from, see verdict_row
    """

    rollout: np.ndarray
    last: np.ndarray
    verdict_rollout: np.ndarray
    verdict_last: np.ndarray


def rollout(weights: np.ndarray) -> np.ndarray:
    """Return the product over layers, last layer first, of 0.5 A + 0.5 I, where A is the mean over heads.

    It takes the residual connection for half of every vector and leaves out values, norms and feed-forward layers.

    Shapes:
        weights: (layer, head, query_pos, key_pos); returns: (query_pos, key_pos)
    """
    joined = np.eye(weights.shape[-1])
    for layer in weights.astype(np.float64):
        joined = (0.5 * layer.mean(0) + 0.5 * np.eye(weights.shape[-1])) @ joined
    return joined


def verdict_row(bundle: Bundle, encoding: Encoding) -> np.ndarray:
    """Return the share that each position's last vector has in what the model predicts.

    It is the position that predicts a token; else [CLS], or the mean over real tokens where the model pools so.

    Shapes:
        returns: (pos,), summing to 1
    """
    outcome = bundle.reader.outcome(encoding)
    if outcome is not None and outcome.place is not None:
        return np.eye(len(encoding))[outcome.place]
    if bundle.kind == "bert" or bundle.config.pooling == "cls":
        return np.eye(len(encoding))[0]
    real = real_positions(encoding, bundle.config.padding).astype(np.float64)
    return real / max(real.sum(), 1.0)


def attention_flow(*, prompt: Prompt) -> Flow:
    """Compute the attention rollout of a text.

    Args:
        prompt: to a model of a kind that reads one text.

    Raises:
        ValueError: as read.
    """
    encoding = prompt.encoding
    weights = stacked_weights(read_attention(prompt.bundle, encoding).trace)
    joined, last, row = rollout(weights), weights[-1].mean(0), verdict_row(prompt.bundle, encoding)
    return Flow(joined, last, row @ joined, row @ last)
