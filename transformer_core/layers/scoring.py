"""Two ways to score how well a query fits a key.

Dot product: Vaswani et al. 2017, eq. 1. Additive: Bahdanau et al. 2015, appendix A.1.2. Read next: attention.py.
"""

import math

import torch
from torch import Tensor, nn


def dot_product_scores(query: Tensor, key: Tensor, *, scale: bool = True) -> Tensor:
    """Return query . key, divided by sqrt(d_head) so that its variance stays near 1 (eq. 1 before the softmax).

    Shapes:
        query: (batch, head, query_pos, d_head); key: (batch, head, key_pos, d_head)
        returns: (batch, head, query_pos, key_pos)
    """
    if scale:
        query = query * (1 / math.sqrt(query.shape[-1]))
    return query @ key.transpose(-2, -1)


class AdditiveScores(nn.Module):
    """v . tanh(q + k), an MLP in place of the dot product; v is learned, one a head."""

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_heads, d_head))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Score every pair.

        Shapes:
            query: (batch, head, query_pos, d_head); key: (batch, head, key_pos, d_head)
            returns: (batch, head, query_pos, key_pos)
        """
        features = torch.tanh(query[:, :, :, None] + key[:, :, None])  # (batch, head, query_pos, key_pos, d_head)
        return torch.einsum("bhqkd,hd->bhqk", features, self.weight)


def masked_softmax(scores: Tensor, *, some_hidden: bool = True) -> Tensor:
    """Return softmax over keys of scores that are minus infinity where masked; a wholly masked row gives 0.

    softmax alone gives NaN there, and -1e9 in place of minus infinity a uniform average.

    Shapes:
        scores: (batch, head, query_pos, key_pos); returns: the same

    Args:
        some_hidden: False where no score is minus infinity, which saves looking for wholly masked rows.
    """
    weights = scores.softmax(-1)
    if some_hidden and bool(weights[..., 0].isnan().any()):
        hidden = scores.amax(-1, keepdim=True) == float("-inf")  # (batch, head, query_pos, 1)
        weights = scores.masked_fill(hidden, 0.0).softmax(-1).masked_fill(hidden, 0.0)
    return weights
