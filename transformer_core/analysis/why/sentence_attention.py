"""A sentence as the attention of each layer sees it: what is read, queries, keys, scores and weights.

Vaswani et al. 2017, section 3.2.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.layers.attention import masked_softmax
from transformer_core.layers.masks import additive_mask
from transformer_core.models import Classifier
from transformer_core.prompt import Prompt
from transformer_core.trace import Trace


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """What one layer's attention computed for a sentence.

    Shapes:
        x: (pos, d_model), as the attention reads it
        query, key: (head, pos, d_head), turned where positions are rotary
        scores, weights: (head, query_pos, key_pos)
        bias: (head, query_pos, key_pos), what positions add to the scores, mostly 0
        allowed: (query_pos, key_pos), True = may attend
    """

    x: Tensor
    query: Tensor
    key: Tensor
    scores: Tensor
    weights: Tensor
    bias: Tensor
    allowed: Tensor

    @property
    def d_head(self) -> int:
        """Width of a head."""
        return self.query.shape[-1]

    def weights_of(self, scores: Tensor) -> Tensor:
        """Return the weights that scores (..., query_pos, key_pos) give under this sentence's mask."""
        hidden = additive_mask(self.allowed, scores.dtype)
        return masked_softmax((scores + hidden).reshape(1, -1, *scores.shape[-2:])).reshape(scores.shape)


@dataclass(frozen=True, eq=False)
class SentenceAttention:
    """A sentence and its layers.

    Shapes:
        rows: (pos, d_model), of the embedding's matrix, as they were looked up
        tokens, embedded: (pos, d_model), scaled where the model does so, before and after positions are added
    """

    labels: tuple[str, ...]
    rows: Tensor
    tokens: Tensor
    embedded: Tensor
    layers: tuple[LayerAttention, ...]

    def layer(self, number: int) -> LayerAttention:
        """Return one layer.

        Raises:
            ValueError: there is no such layer.
        """
        require_index("layer", number, len(self.layers))
        return self.layers[number]


def sentence_attention(prompt: Prompt) -> SentenceAttention:
    """Run a classifier over a text and return what its attention computed.

    Raises:
        ValueError: the bundle is of another kind, or scores by another rule than the dot product.
    """
    bundle = prompt.bundle
    bundle.model_as(Classifier)
    config = bundle.config
    if config.scoring != "dot_product":
        raise ValueError(f"bundle={bundle.name!r} scores by scoring={config.scoring!r}; it must be 'dot_product'")
    encoding = prompt.encoding
    sites = ("encoder.embedding.*", "*.self_attention.*", *bundle.reader.stages)
    trace = read(bundle, encoding, sites=sites).trace
    embedded = trace["encoder.embedding.residual"][0].float().cpu()
    name = "scaled_embedding" if config.scale_embeddings else "token_embedding"
    return SentenceAttention(
        encoding.labels,
        trace["encoder.embedding.token_embedding"][0].float().cpu(),
        trace[f"encoder.embedding.{name}"][0].float().cpu(),
        embedded,
        tuple(_layer(trace, number, bundle) for number in range(config.n_layers)),
    )


def _layer(trace: Trace, number: int, bundle: Bundle) -> LayerAttention:
    config, scope = bundle.config, f"encoder.layer{number}.self_attention"
    read_there, share = bundle.reader.wiring.into(scope), config.n_heads // config.kv_heads

    def tensor(leaf: str) -> Tensor:
        return trace[f"{scope}.{leaf}"][0].float().cpu()

    turned = "rotated_" if config.positions == "rotary" else ""
    scores = tensor("scores")
    added = f"{scope}.position_bias"
    bias = trace[added].float().cpu() if added in trace else torch.zeros_like(scores)
    return LayerAttention(
        trace[read_there][0].float().cpu(),
        tensor(f"{turned}query"),
        tensor(f"{turned}key").repeat_interleave(share, 0),
        scores,
        tensor("weights"),
        bias,
        tensor("masked_scores")[0].isfinite(),
    )
