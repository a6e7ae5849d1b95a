"""Multi-head attention, self or cross: two scoring functions, the masked softmax, and the module, every step tapped.

Vaswani et al. 2017, section 3.2; additive scores: Bahdanau et al. 2015, appendix A.1.2; fewer heads of keys and values:
Shazeer 2019, Ainslie et al. 2023.
Read next: transformer_core/layers/blocks.py
"""

import math
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.config import ModelConfig, QueryKeyNorm, Scoring, head_size, require_choice
from transformer_core.layers.cache import KeptPair
from transformer_core.layers.dropout import drop
from transformer_core.layers.masks import (
    HIDDEN,
    additive_causal_mask,
    additive_mask,
    causal_mask,
    check_mask,
    combined_mask,
    window_mask,
)
from transformer_core.layers.normalization import RmsNorm
from transformer_core.layers.positions import ROTARY, RelativeBias, Rotary, alibi_bias, rotate
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


def dot_product_scores(query: Tensor, key: Tensor, *, scale: bool = True, width: float | None = None) -> Tensor:
    """Return query . key, divided by sqrt(d_head) so that its variance stays near 1 (eq. 1 before the softmax).

    Shapes:
        query: (batch, head, query_pos, d_head); key: (batch, head, key_pos, d_head)
        returns: (batch, head, query_pos, key_pos)

    Args:
        width: whose root is divided by, in place of d_head.
    """
    if scale:
        query = query * (1 / math.sqrt(width or query.shape[-1]))
    return query @ key.transpose(-2, -1)


def capped(scores: Tensor, cap: float | None) -> Tensor:
    """Return cap * tanh(scores / cap), which stays within -cap and cap; without a cap the scores themselves."""
    return scores if cap is None else cap * torch.tanh(scores / cap)


class AdditiveScores(nn.Module):
    """v . tanh(q + k), an MLP in place of the dot product; v is learned, one per head."""

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


INNER_SITES = ("uncapped_scores", "scores", "masked_scores", "weights")


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(d_head)) V in n_heads subspaces, side by side (eq. 1 and section 3.2.2).

    Args:
        d_model, n_heads: sizes.
        n_kv_heads: heads of keys and values, each read by n_heads // n_kv_heads heads in a row; by default n_heads.
        d_head: width of a head; by default d_model // n_heads, any other is free.
        scoring: "dot_product" or "additive".
        scale: divide dot products by sqrt(d_head).
        score_width, score_cap, query_key_norm, window: as in ModelConfig.
        positions: "rotary" turns queries and keys, "alibi" adds a penalty of distance, "relative" the numbers of the
            RelativeBias that a stack hands to its layers; all others change nothing here.
        projections: False uses the input itself as query, key and value, and the heads as output.
        share_query_key, share_key_value: keys use the query's projection; values use the key's.
        rotary: how far "rotary" turns which coordinates.
        norm_eps: of query_key_norm.
        bias, output_bias: query, key and value have a bias, and the output projection has one, by default if they do.
        dropout: on the weights, in training only; the probe sees the weights before it.

    Raises:
        ValueError: sizes that do not fit, an unknown scoring.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        scoring: Scoring = "dot_product",
        scale: bool = True,
        score_width: float | None = None,
        score_cap: float | None = None,
        query_key_norm: QueryKeyNorm = "none",
        norm_eps: float = 1e-6,
        positions: str = "none",
        rotary: Rotary = ROTARY,
        window: int | None = None,
        projections: bool = True,
        share_query_key: bool = False,
        share_key_value: bool = False,
        bias: bool = True,
        output_bias: bool | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        require_choice("scoring", scoring, ("dot_product", "additive"))
        self.n_heads, self.d_head = n_heads, head_size(d_model, n_heads, d_head)
        self.n_kv_heads = n_kv_heads or n_heads
        width, kept_width = n_heads * self.d_head, self.n_kv_heads * self.d_head
        if not projections and width != d_model:
            raise ValueError(
                f"n_heads={n_heads} times d_head={self.d_head} must be d_model={d_model} with projections=False"
            )

        def proj(wanted: bool, inputs: int, outputs: int, biased: bool = bias) -> Linear | None:
            return Linear(inputs, outputs, bias=biased) if projections and wanted else None

        def norm(all_heads: int) -> RmsNorm | None:
            if query_key_norm == "none":
                return None
            return RmsNorm(all_heads if query_key_norm == "all" else self.d_head, eps=norm_eps)

        self.query_proj = proj(True, d_model, width)
        self.key_proj = proj(not share_query_key, d_model, kept_width)
        self.value_proj = proj(not share_key_value, d_model, kept_width)
        self.output_proj = proj(True, width, d_model, bias if output_bias is None else output_bias)
        self.query_norm, self.key_norm = norm(width), norm(kept_width)
        self.additive_scores = AdditiveScores(n_heads, self.d_head) if scoring == "additive" else None
        self.relative_bias: RelativeBias | None = None
        self.scale, self.score_width, self.score_cap = scale, score_width, score_cap
        self.positions, self.rotary, self.window, self.dropout = positions, rotary, window, dropout

    @classmethod
    def from_config(cls, config: ModelConfig, layer: int = 0, *, cross: bool = False) -> Self:
        """Make the attention of one layer of a config; cross-attention has no positions of its own, no window."""
        own_bias = config.query_key_value_bias
        return cls(
            config.d_model,
            config.n_heads,
            n_kv_heads=config.n_kv_heads,
            d_head=config.d_head,
            scoring=config.scoring,
            scale=config.scale_scores,
            score_width=config.score_width,
            score_cap=config.score_cap,
            query_key_norm=config.query_key_norm,
            norm_eps=config.norm_eps,
            positions="none" if cross else config.positions,
            rotary=Rotary.of_layer(config, layer),
            window=None if cross else config.window(layer),
            projections=config.projections,
            share_query_key=config.share_query_key,
            share_key_value=config.share_key_value,
            bias=config.bias if own_bias is None else own_bias,
            output_bias=config.bias,
            dropout=config.dropout_elsewhere,
        )

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        hidden_score: float = HIDDEN,
        cache: KeptPair | None = None,
        queries: slice | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Let every position of x attend to x, or to memory where it is given.

        Shapes:
            x: (batch, query_pos, d_model); memory: (batch, key_pos, d_model)
            mask: boolean, True = may attend, broadcastable to (batch, head, query_pos, key_pos)
            returns: (batch, query_pos, d_model)

        Args:
            causal: hide later positions, besides what mask hides.
            hidden_score: that the mask adds where it hides; minus infinity where causal.
            cache: keys and values of the positions before x, to which x's are added, or those of memory.
            queries: the positions of x that attend and are returned; all by default. Neither with memory nor a cache.
        """
        query, key, value = self._project(x, x if memory is None else memory, cache, queries, probe)
        if mask is not None:
            if cache is not None and self.window is not None:
                mask = mask[..., -key.shape[2] :]  # the cache has forgotten what no query sees any more
            check_mask(mask, (x.shape[0], self.n_heads, x.shape[1], key.shape[2]))
            mask = torch.atleast_2d(mask)
        if self.window is not None and key.shape[2] > self.window:
            mask = combined_mask(mask, window_mask(x.shape[1], key.shape[2], self.window, device=x.device))
        if queries is not None:
            mask, causal = self._of_queries(queries, mask, causal, x), False
        drops = self.training and self.dropout > 0 and not query.is_cuda
        bias = self._bias(x, key, queries, probe)
        key, value = self._for_each_head(key), self._for_each_head(value)
        if self.additive_scores is not None or self.score_cap is not None or drops or probe.wants(*INNER_SITES):
            heads = self._explicit(query, key, value, mask, bias, causal, hidden_score, probe)
        else:
            heads = self._fused(query, key, value, mask, bias, causal, hidden_score)
        heads = probe.tap("heads", heads)  # (batch, head, query_pos, d_head)
        joined = heads.transpose(1, 2).flatten(2)  # (batch, query_pos, head * d_head)
        return probe.tap("output", joined if self.output_proj is None else self.output_proj(joined))

    def _of_queries(self, queries: slice, mask: Tensor | None, causal: bool, x: Tensor) -> Tensor | None:
        """Return the mask, the causal one in it, of some queries alone."""
        if causal:
            mask = combined_mask(mask, causal_mask(x.shape[1], device=x.device))
        return mask if mask is None or mask.shape[-2] == 1 else mask[..., queries, :]

    def _project(
        self, x: Tensor, memory: Tensor, cache: KeptPair | None, queries: slice | None, probe: Probe
    ) -> tuple[Tensor, Tensor, Tensor]:
        query_proj = self.query_proj
        key_proj = query_proj if self.key_proj is None else self.key_proj
        value_proj = key_proj if self.value_proj is None else self.value_proj
        asking = x if queries is None else x[:, queries]
        query = probe.tap("query", self._split(asking, query_proj, self.n_heads))  # (batch, head, query_pos, d_head)
        if self.query_norm is not None:
            query = probe.tap("normalized_query", self._normalized(query, self.query_norm))
        if cache is not None and (kept := cache.whole()):
            return query, *kept
        key = probe.tap("key", self._split(memory, key_proj, self.n_kv_heads))  # (batch, kv_head, key_pos, d_head)
        value = probe.tap("value", self._split(memory, value_proj, self.n_kv_heads))  # as key
        if self.key_norm is not None:
            key = probe.tap("normalized_key", self._normalized(key, self.key_norm))
        if self.positions == "rotary":
            start = 0 if cache is None else cache.length
            first = 0 if queries is None else queries.start
            query = probe.tap("rotated_query", rotate(query, start + first, self.rotary))
            key = probe.tap("rotated_key", rotate(key, start, self.rotary))
        return (query, key, value) if cache is None else (query, *cache.joined(key, value, self.window))

    def _split(self, x: Tensor, proj: Linear | None, n_heads: int) -> Tensor:
        projected = x if proj is None else proj(x)
        return projected.view(*x.shape[:2], n_heads, self.d_head).transpose(1, 2)

    def _normalized(self, heads: Tensor, norm: RmsNorm) -> Tensor:
        """Normalise queries or keys (batch, head, pos, d_head), each head alone or all of a position at once."""
        if norm.weight.shape[0] == self.d_head:
            return norm(heads)
        joined = norm(heads.transpose(1, 2).flatten(2))  # (batch, pos, head * d_head)
        return joined.view(*joined.shape[:2], -1, self.d_head).transpose(1, 2)

    def _for_each_head(self, kept: Tensor) -> Tensor:
        """Repeat keys or values (batch, kv_head, key_pos, d_head) for each head that reads them."""
        share = self.n_heads // self.n_kv_heads
        return kept if share == 1 else kept.repeat_interleave(share, dim=1)  # (batch, head, key_pos, d_head)

    def _bias(self, x: Tensor, key: Tensor, queries: slice | None, probe: Probe) -> Tensor | None:
        if self.relative_bias is not None:
            bias = self.relative_bias(x.shape[1], key.shape[2])  # (head, query_pos, key_pos)
        elif self.positions == "alibi":
            bias = alibi_bias(self.n_heads, x.shape[1], key.shape[2], x.device)  # (head, query_pos, key_pos)
        else:
            return None
        return probe.tap("position_bias", bias if queries is None else bias[:, queries])

    def _explicit(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        causal: bool,
        hidden_score: float,
        probe: Probe,
    ) -> Tensor:
        if self.additive_scores is not None:
            scores = self.additive_scores(query, key)
        else:
            scores = dot_product_scores(query, key, scale=self.scale, width=self.score_width)
        if self.score_cap is not None:
            scores = capped(probe.tap("uncapped_scores", scores), self.score_cap)
        scores = probe.tap("scores", scores if bias is None else scores + bias)  # (batch, head, query_pos, key_pos)
        masked_scores = (
            scores if mask is None else scores + additive_mask(mask, scores.dtype, hidden_score=hidden_score)
        )
        if causal:
            masked_scores = masked_scores + additive_causal_mask(*scores.shape[2:], scores.dtype, scores.device)
        used = probe.tap("masked_scores", masked_scores)
        weights = masked_softmax(used, some_hidden=used is not scores or probe.wants("scores"))
        weights = probe.tap("weights", weights)  # (batch, head, query_pos, key_pos)
        return (drop(weights, self.dropout) if self.training else weights) @ value

    def _fused(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        causal: bool,
        hidden_score: float,
    ) -> Tensor:
        native_causal = causal and mask is None and bias is None and query.shape[2] == key.shape[2]
        if causal and not native_causal and query.shape[2] > 1:  # a last position alone has nothing later to hide
            mask = combined_mask(mask, causal_mask(query.shape[2], key.shape[2], device=query.device))
        if mask is not None and (bias is not None or hidden_score != HIDDEN):
            mask = additive_mask(mask, query.dtype, hidden_score=hidden_score)
        if bias is not None:
            mask = bias if mask is None else bias + mask
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=native_causal,
            scale=(1 / math.sqrt(self.score_width or self.d_head)) if self.scale else 1.0,
        )
