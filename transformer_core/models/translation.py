"""Encoder and decoder together: a source sentence in, scores for each next target word out.

Vaswani et al. 2017, figure 1.
Read next: transformer_core/models/bert.py
"""

from dataclasses import dataclass

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.cache import KeyValueCache
from transformer_core.layers.initialization import initialize
from transformer_core.layers.masks import padding_mask
from transformer_core.models.decoder import Decoder
from transformer_core.models.encoder import Encoder
from transformer_core.models.output import WordScores
from transformer_core.probe import SILENT, Probe


@dataclass(frozen=True, eq=False)
class DecoderState:
    """The state of a translation between two target words.

    Shapes:
        memory: (batch, source_pos, d_model); memory_mask: (batch, 1, 1, source_pos), or None without padding

    Args:
        cache: of the target words so far.
    """

    memory: Tensor
    memory_mask: Tensor | None
    cache: KeyValueCache

    def truncated(self, length: int) -> "DecoderState":
        """Return another, as it was after its first target words."""
        return DecoderState(self.memory, self.memory_mask, self.cache.truncated(length))


class Translation(nn.Module):
    """The whole Transformer of the paper."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        if config.share_embeddings:
            self.decoder.embedding.token = self.encoder.embedding.token
        self.output = WordScores(
            self.decoder.embedding.token,
            config.d_model,
            tied=config.tied_output,
            bias=config.output_bias,
            cap=config.logit_cap,
            scaled=config.scale_output,
        )
        initialize(self)

    def encode(
        self, source_ids: Tensor, *, mask: Tensor | None = None, probe: Probe = SILENT
    ) -> tuple[Tensor, Tensor | None]:
        """Return the memory (batch, source_pos, d_model) and the mask that hides its padding."""
        memory = self.encoder(source_ids, mask=mask, probe=probe.at("encoder"))
        return probe.tap("memory", memory), padding_mask(source_ids, self.config.padding)

    def decode(
        self,
        target_ids: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Return the logits (batch, target_pos, target_vocab) of the word after each target position."""
        x = self.decoder(target_ids, memory, mask=mask, memory_mask=memory_mask, cache=cache, probe=probe.at("decoder"))
        return self.output(x, probe=probe)

    def start(self, source_ids: Tensor) -> DecoderState:
        """Read the source (batch, source_pos)."""
        return DecoderState(*self.encode(source_ids), KeyValueCache(self.config.n_layers))

    def read(self, token_ids: Tensor, state: DecoderState, *, probe: Probe = SILENT) -> tuple[Tensor, DecoderState]:
        """Read the next target words and score the one after each.

        Shapes:
            token_ids: (batch, pos); returns: (batch, pos, target_vocab)
        """
        cache = state.cache.picked()
        if self.config.causal:
            logits = self.decode(token_ids, state.memory, memory_mask=state.memory_mask, cache=cache, probe=probe)
        else:
            logits = self.decode(cache.read(token_ids), state.memory, memory_mask=state.memory_mask, probe=probe)
        return logits[:, -token_ids.shape[1] :], DecoderState(state.memory, state.memory_mask, cache)

    def advance(self, token_ids: Tensor, state: DecoderState, *, probe: Probe = SILENT) -> tuple[Tensor, DecoderState]:
        """Read the next target words and score the one after them; see generation/writer.py.

        Shapes:
            token_ids: (batch, pos); returns: (batch, target_vocab)
        """
        logits, state = self.read(token_ids, state, probe=probe)
        return logits[:, -1], state

    def reorder(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """Return the state of these rows of the batch, in this order."""
        mask = None if state.memory_mask is None else state.memory_mask.index_select(0, rows)
        return DecoderState(state.memory.index_select(0, rows), mask, state.cache.picked(rows))

    def forward(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Score a batch of sentence pairs.

        Shapes:
            source_ids: (batch, source_pos); target_ids: (batch, target_pos)
            source_mask, target_mask, memory_mask: as in Encoder and Decoder
            returns: (batch, target_pos, target_vocab)

        Raises:
            ValueError: as Encoder and Decoder.
        """
        memory, real = self.encode(source_ids, mask=source_mask, probe=probe)
        memory_mask = real if memory_mask is None else memory_mask
        return self.decode(target_ids, memory, mask=target_mask, memory_mask=memory_mask, probe=probe)
