"""GPT: a masked decoder that scores the next word.

Radford et al. 2018 and 2019. Read next: checkpoints.py.
"""

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.initialization import initialize
from transformer_core.models.decoder import MaskedDecoder
from transformer_core.models.output import WordScores
from transformer_core.probe import SILENT, Probe


class Gpt(nn.Module):
    """A masked decoder and an output matrix, tied to the embedding or free."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.decoder = MaskedDecoder(config)
        self.output = WordScores(self.decoder.embedding.token, tied=config.tied_output, bias=False)
        initialize(self)

    def forward(self, token_ids: Tensor, *, mask: Tensor | None = None, probe: Probe = SILENT) -> Tensor:
        """Score the word after each position.

        Shapes:
            token_ids: (batch, pos); mask: as in Decoder
            returns: (batch, pos, vocab)

        Raises:
            ValueError: as Encoder.
        """
        x = self.decoder(token_ids, mask=mask, probe=probe.at("decoder"))
        return self.output(x, probe=probe)
