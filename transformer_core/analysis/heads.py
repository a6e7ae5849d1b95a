"""One attention head, step by step, and what happens without it.

Vaswani et al. 2017, eq. 1; switching heads off: Michel et al. 2019, section 2.3. Read next: source.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from transformer_core.probe import Edit, Trace


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """Everything that one head computed for one sentence, in float32.

    Shapes:
        query: (query_pos, d_head); key, value: (key_pos, d_head)
        products, scores, masked_scores, weights: (query_pos, key_pos)
        mixture: (query_pos, d_head)

    Args:
        products: query . key, recomputed here; all else is as the model computed it.
        divisor: sqrt(d_head).
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    products: np.ndarray
    scores: np.ndarray
    masked_scores: np.ndarray
    weights: np.ndarray
    mixture: np.ndarray
    divisor: float


def head_steps(trace: Trace, scope: str, head: int) -> HeadSteps:
    """Return the steps of one dot-product head of the first sentence of a batch.

    Args:
        trace: with every site of the attention at `scope`.
        scope: such as ``encoder.layer0.self_attention``.
        head: from 0.

    Raises:
        ValueError: there is no such head.
    """
    n_heads = trace[f"{scope}.weights"].shape[1]
    if not 0 <= head < n_heads:
        raise ValueError(f"head={head} must be from 0 to {n_heads - 1}")

    def array(leaf: str) -> np.ndarray:
        return trace[f"{scope}.{leaf}"][0, head].float().cpu().numpy()

    query, key = (array(f"rotated_{leaf}" if f"{scope}.rotated_{leaf}" in trace else leaf) for leaf in ("query", "key"))
    masked_scores, weights = array("masked_scores"), array("weights")
    products, divisor = query @ key.T, math.sqrt(query.shape[1])
    return HeadSteps(
        query,
        key,
        array("value"),
        products,
        array("scores"),
        masked_scores,
        weights,
        array("heads"),
        divisor,
    )


def all_weights(trace: Trace) -> dict[str, np.ndarray]:
    """Return the weights of every recorded attention for the first sentence, by scope.

    Shapes:
        returns: each (head, query_pos, key_pos)
    """
    return {
        name.removesuffix(".weights"): tensor[0].float().cpu().numpy()
        for name, tensor in trace.items()
        if name.endswith(".weights")
    }


def head_off(scope: str, head: int) -> Mapping[str, Edit]:
    """Return the edit that sets one head's mixture to zero, so that nothing of it reaches the residual stream."""

    def silence(heads: Tensor) -> Tensor:
        heads = heads.clone()  # (batch, head, query_pos, d_head)
        heads[:, head] = 0.0
        return heads

    return {f"{scope}.heads": silence}
