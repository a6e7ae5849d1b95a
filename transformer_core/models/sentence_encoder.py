"""A sentence as one vector: an encoder without a head, whose positions are averaged, or whose [CLS] is taken.

Reimers and Gurevych 2019, section 3. Read next: output.py.
"""

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.initialization import initialize
from transformer_core.models.encoder import Encoder
from transformer_core.models.pooling import sentence_vector
from transformer_core.probe import SILENT, Probe


class SentenceEncoder(nn.Module):
    """An encoder and nothing that was learned after it; sentences are compared by the cosine of their vectors."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Read a batch.

        Shapes:
            token_ids, segment_ids: (batch, pos); mask: as in Encoder
            returns: one vector a sentence, of no particular length (batch, d_model)

        Raises:
            ValueError: as Encoder.
        """
        x = self.encoder(token_ids, segment_ids=segment_ids, mask=mask, probe=probe.at("encoder"))
        return sentence_vector(self.config, x, token_ids, probe)
