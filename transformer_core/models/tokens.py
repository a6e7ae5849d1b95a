"""What is read off each token: its label, such as part of a name, or whether the answer to a question begins there.

Devlin et al. 2019, sections 4.2 (answers) and 5.3 (names).
"""

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.dropout import Dropout
from transformer_core.layers.initialization import initialize
from transformer_core.models.encoder import Encoder
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe

BOUNDS = ("start", "end")


class TokenClassifier(nn.Module):
    """An encoder and one linear map from each token's vector to the labels."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.dropout = Dropout(config.dropout_elsewhere)
        self.class_proj = Linear(config.d_model, config.n_classes)
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Score every label at every position.

        Shapes:
            token_ids, segment_ids: (batch, pos); mask: as in Encoder
            returns: logits (batch, pos, class)

        Raises:
            ValueError: as Encoder.
        """
        x = self.encoder(token_ids, segment_ids=segment_ids, mask=mask, probe=probe.at("encoder"))
        return probe.tap("token_logits", self.class_proj(self.dropout(x)))


class AnswerFinder(nn.Module):
    """An encoder and two vectors, S and E: an answer starts where S x is great, and ends where E x is."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.bound_proj = Linear(config.d_model, len(BOUNDS))
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Score every position of a question and its passage as the start and as the end of the answer.

        Shapes:
            token_ids, segment_ids: (batch, pos); mask: as in Encoder
            returns: logits (batch, pos, bound), of the start and of the end

        Raises:
            ValueError: as Encoder.
        """
        x = self.encoder(token_ids, segment_ids=segment_ids, mask=mask, probe=probe.at("encoder"))
        return probe.tap("span_logits", self.bound_proj(x))
