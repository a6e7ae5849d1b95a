"""BERT: an encoder that guesses masked words and tells whether two sentences belong together.

Devlin et al. 2019.
Read next: transformer_core/models/gpt.py
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.blocks import Stream
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.layers.initialization import initialize
from transformer_core.layers.normalization import norm_of
from transformer_core.models.encoder import Encoder
from transformer_core.models.output import WordScores
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


class BertOutput(NamedTuple):
    """What Bert returns.

    Shapes:
        mlm_logits: (batch, pos, vocab); nsp_logits: (batch, 2), class 0 = the second sentence follows the first;
        pooled: (batch, d_model); with pair_head=False, or where not all positions are wanted, the
        last two are (batch, 0)
    """

    mlm_logits: Tensor
    nsp_logits: Tensor
    pooled: Tensor


class MlmHead(nn.Module):
    """norm(phi(x W + b)) times the token embedding's matrix, plus a bias per word (Devlin et al. 2019, their code).

    phi is head_activation, in BERT's own code GELU.
    """

    def __init__(self, config: ModelConfig, encoder: Encoder) -> None:
        super().__init__()
        self.activation = config.head_activation
        width, tied = config.d_embedding, config.tied_output
        self.transform_proj = Linear(config.d_model, width, bias=config.head_bias)
        self.norm = norm_of(config, width)
        self.output = WordScores(encoder.embedding.token, width, tied=tied, bias=True, cap=config.logit_cap)

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Score (batch, pos, d_model): (batch, pos, vocab)."""
        inside = ACTIVATIONS[self.activation](self.transform_proj(x))
        transformed = probe.tap("transformed", self.norm(inside, probe=probe.at("norm")))
        return self.output(transformed, probe=probe)


class NspHead(nn.Module):
    """Two classes from the pooled vector."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.class_proj = Linear(config.d_model, 2)

    def forward(self, pooled: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Score (batch, d_model): (batch, 2)."""
        return probe.tap("class_logits", self.class_proj(pooled))


class Bert(nn.Module):
    """Token, segment and position embeddings, an encoder, and BERT's pre-training heads, or the first of them alone."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        if config.pair_head:
            self.pooler_proj = Linear(config.d_model, config.d_model)
        self.mlm_head = MlmHead(config, self.encoder)
        if config.pair_head:
            self.nsp_head = NspHead(config)
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        wanted: slice | None = None,
        stream: Stream | None = None,
        probe: Probe = SILENT,
    ) -> BertOutput:
        """Read a batch.

        Shapes:
            token_ids, segment_ids: (batch, pos); mask: as in Encoder

        Args:
            wanted, stream: as in Encoder; with `wanted`, no more than the words there are guessed.

        Raises:
            ValueError: as Encoder.
        """
        x = self.encoder(
            token_ids, segment_ids=segment_ids, mask=mask, wanted=wanted, stream=stream, probe=probe.at("encoder")
        )
        if not self.config.pair_head or wanted is not None:
            nothing = x.new_empty(len(x), 0)
            return BertOutput(self.mlm_head(x, probe=probe.at("mlm_head")), nothing, nothing)
        cls_embedding = probe.tap("cls_embedding", x[:, 0])  # (batch, d_model)
        pooled = probe.tap("pooled", torch.tanh(self.pooler_proj(cls_embedding)))  # (batch, d_model)
        mlm_logits = self.mlm_head(x, probe=probe.at("mlm_head"))
        return BertOutput(mlm_logits, self.nsp_head(pooled, probe=probe.at("nsp_head")), pooled)
