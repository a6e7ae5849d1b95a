"""Why several heads? They look at different tokens, and cost what one wide head costs.

Vaswani et al. 2017, section 3.2.2.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from transformer_core.analysis.attention.heads import entropy
from transformer_core.analysis.timing import Stopwatch, alone_on_one_thread
from transformer_core.analysis.why.sentence_attention import sentence_attention
from transformer_core.layers.attention import MultiHeadAttention, dot_product_scores, masked_softmax
from transformer_core.layers.initialization import initialize
from transformer_core.probe import Probe
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

HEADS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, eq=False)
class OwnHeads:
    """What the heads of one layer look at, against one head that has all their queries and keys joined.

    Shapes:
        weights: (head, query_pos, key_pos); joined: (query_pos, key_pos); divergence: (head, head)

    Args:
        divergence: Jensen-Shannon divergence of two heads' weights, mean over queries, in bits: 0 alike, 1 disjoint.
        mean_divergence: over all pairs of different heads.
        targets: how many different tokens the heads' greatest weights fall on, mean over queries.
        entropy, joined_entropy: of the weights, mean over heads and queries, in nats.
    """

    labels: tuple[str, ...]
    weights: np.ndarray
    joined: np.ndarray
    divergence: np.ndarray
    mean_divergence: float
    targets: float
    entropy: float
    joined_entropy: float


def divergence(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the Jensen-Shannon divergence over the last axis, in bits (Lin 1991, eq. 4.1)."""
    mixed = entropy((first + second) / 2) - (entropy(first) + entropy(second)) / 2
    return np.maximum(mixed, 0.0) / math.log(2)


def heads_of_layer(*, prompt: Prompt, layer: int) -> OwnHeads:
    """Compare the heads of one layer of a model on a text.

    Raises:
        ValueError: there is no such layer, or as sentence_attention.
    """
    sight = sentence_attention(prompt)
    seen = sight.layer(layer)
    n_heads = len(seen.weights)
    joined_query, joined_key = (part.transpose(0, 1).flatten(1) for part in (seen.query, seen.key))
    joined = seen.weights_of(dot_product_scores(joined_query, joined_key) + seen.bias.mean(0))
    weights = seen.weights.numpy()
    pairs = divergence(weights[:, None], weights[None]).mean(-1)  # (head, head)
    targets = [len(set(column)) for column in weights.argmax(-1).T.tolist()]
    return OwnHeads(
        sight.labels,
        weights,
        joined.numpy(),
        pairs,
        float(pairs.sum() / max(n_heads * (n_heads - 1), 1)),
        float(np.mean(targets)),
        float(entropy(weights).mean()),
        float(entropy(joined.numpy()).mean()),
    )


@dataclass(frozen=True, eq=False)
class HeadCost:
    """What attention costs when one width is cut into more and more heads.

    Shapes:
        heads, parameters, multiplications, exponentials, seconds, difference: (cut,)

    Args:
        multiplications: of the matrix products, counted by torch as they ran.
        exponentials: of the softmax, one per head and pair of tokens.
        seconds: least time of one forward pass on one thread.
        difference: greatest difference between the reshaped computation and the same heads computed one by one.
        spread: of the times, as of Stopwatch.
    """

    heads: np.ndarray
    parameters: np.ndarray
    multiplications: np.ndarray
    exponentials: np.ndarray
    seconds: np.ndarray
    difference: np.ndarray
    spread: float


def one_by_one(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    """Compute an attention's heads in a loop, each with its own rows of the projections, and join them.

    Shapes:
        x: (batch, pos, d_model); returns: the same
    """
    mixtures = []
    for head in range(attention.n_heads):
        rows = slice(head * attention.d_head, (head + 1) * attention.d_head)
        query, key, value = (
            x @ proj.weight[rows].T + proj.bias[rows]
            for proj in (attention.query_proj, attention.key_proj, attention.value_proj)
            if proj is not None
        )
        mixtures.append(masked_softmax(dot_product_scores(query, key)) @ value)  # (batch, pos, d_head)
    assert attention.output_proj is not None
    return attention.output_proj(torch.cat(mixtures, dim=-1))


@torch.no_grad()
def cost_of_heads(*, d_model: int, n_tokens: int, seed: int, measurement: int) -> HeadCost:
    """Count and time attention of one width cut into 1 to 16 heads.

    Args:
        seed: of the weights and of the input, which are random: what is measured does not depend on them.
        measurement: any number; another one measures the times again.
    """
    x = torch.randn(1, n_tokens, d_model, generator=torch.Generator().manual_seed(seed))
    rows, watch = [], Stopwatch()
    for n_heads in counted(HEADS):
        attention = MultiHeadAttention(d_model, n_heads)
        initialize(attention, torch.Generator().manual_seed(seed))
        with FlopCounterMode(display=False) as counter:
            reshaped = attention(x, probe=Probe(("weights",)))
        with alone_on_one_thread():
            seconds = watch.seconds(lambda attention=attention: attention(x, probe=Probe(("weights",))))
        rows.append(
            (
                n_heads,
                sum(parameter.numel() for parameter in attention.parameters()),
                counter.get_total_flops() // 2,
                n_heads * n_tokens**2,
                seconds,
                float((reshaped - one_by_one(attention, x)).abs().max()),
            )
        )
    return HeadCost(*(np.array(column) for column in zip(*rows, strict=True)), spread=watch.spread)
