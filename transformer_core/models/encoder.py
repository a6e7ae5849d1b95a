"""The encoder, in which every position sees every other, and the sentence encoder that pools it into one vector.

Vaswani et al. 2017, section 3.1; sentence vectors: Reimers and Gurevych 2019, section 3.
Read next: transformer_core/models/decoder.py
"""

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.blocks import EncoderBlock, Stack, Stream
from transformer_core.layers.embeddings import InputEmbedding
from transformer_core.layers.initialization import initialize
from transformer_core.layers.masks import HIDDEN, encoder_mask
from transformer_core.models.output import sentence_vector
from transformer_core.probe import SILENT, Probe


class Encoder(nn.Module):
    """Token ids to one contextual vector per position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = InputEmbedding(config)
        self.stack = Stack(config, EncoderBlock)
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        hidden_score: float = HIDDEN,
        wanted: slice | None = None,
        stream: Stream | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Encode a batch.

        Shapes:
            token_ids, segment_ids: (batch, pos)
            mask: boolean, True = may attend, broadcastable to (batch, head, query_pos, key_pos); it takes the place
                of the padding mask, which is made from the config's `padding` and `padding_mask` where none is given
            returns: (batch, pos, d_model), or the wanted positions

        Args:
            hidden_score: that the given mask adds where it hides.
            wanted: the positions wanted; None wants all. The rest of the last block is then never computed.
            stream: from where this pass goes on, of the same ids; None starts with the embedding.

        Raises:
            ValueError: ids outside the vocabulary, an empty batch, too many positions, a mask that does not fit, a
                stream that does not.
        """
        if stream is None:
            x = self.embedding(token_ids, segment_ids=segment_ids, probe=probe.at("embedding"))
        else:
            x = stream.entering(token_ids, self.config)
        if mask is None:
            mask, hidden_score = encoder_mask(token_ids, self.config)
        return self.stack(x, mask=mask, hidden_score=hidden_score, wanted=wanted, stream=stream, probe=probe)


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
            returns: one vector per sentence, of no particular length (batch, d_model)

        Raises:
            ValueError: as Encoder.
        """
        x = self.encoder(token_ids, segment_ids=segment_ids, mask=mask, probe=probe.at("encoder"))
        return sentence_vector(self.config, x, token_ids, probe)
