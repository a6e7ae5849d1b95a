"""A sentence's class from its [CLS] vector, or from the mean of its real tokens.

Devlin et al. 2019, section 4.1; mean pooling: Reimers and Gurevych 2019, section 3.
Read next: transformer_core/models/translation.py
"""

import torch
from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.blocks import Stream
from transformer_core.layers.dropout import Dropout
from transformer_core.layers.feed_forward import gelu
from transformer_core.layers.initialization import initialize
from transformer_core.layers.normalization import norm_of
from transformer_core.models.encoder import Encoder
from transformer_core.models.output import sentence_vector
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe

POOLERS = {"tanh": torch.tanh, "relu": torch.relu, "gelu": gelu}


class Classifier(nn.Module):
    """An encoder and one linear map from the sentence's vector to the classes, with a pooler between where asked."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        pools = config.pooler != "none"
        self.pooler_proj = Linear(config.d_model, config.d_model, bias=config.head_bias) if pools else None
        self.pooler_norm = norm_of(config) if config.pooler_norm else None
        self.dropout = Dropout(config.dropout_elsewhere)
        self.class_proj = Linear(config.d_model, config.n_classes)
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        stream: Stream | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Classify a batch.

        Shapes:
            token_ids, segment_ids: (batch, pos); mask: as in Encoder
            returns: logits (batch, class)

        Args:
            stream: as in Encoder.

        Raises:
            ValueError: as Encoder.
        """
        only_cls = probe is SILENT and self.config.pooling == "cls"  # all else is for nobody to see
        x = self.encoder(
            token_ids,
            segment_ids=segment_ids,
            mask=mask,
            wanted=slice(0, 1) if only_cls else None,
            stream=stream,
            probe=probe.at("encoder"),
        )
        pooled = self.pool(sentence_vector(self.config, x, token_ids, probe), probe=probe)  # (batch, d_model)
        return probe.tap("class_logits", self.class_proj(self.dropout(pooled)))

    def pool(self, vectors: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Map sentence vectors (..., d_model) to what the classes are scored by; without a pooler they stay."""
        if self.pooler_proj is None:
            return vectors
        pooled = POOLERS[self.config.pooler](self.pooler_proj(vectors))
        if self.pooler_norm is not None:
            pooled = self.pooler_norm(pooled[..., None, :], probe=probe.at("pooler_norm"))[..., 0, :]
        return probe.tap("pooled", pooled)
