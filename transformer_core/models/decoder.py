"""Decoders: a position sees only itself and what came before; with cross-attention, or without.

Vaswani et al. 2017, section 3.1; without cross-attention: Radford et al. 2018.
Read next: transformer_core/models/classifier.py
"""

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.blocks import DecoderBlock, EncoderBlock, Stack, Stream
from transformer_core.layers.cache import KeyValueCache
from transformer_core.layers.embeddings import InputEmbedding
from transformer_core.layers.initialization import initialize
from transformer_core.layers.masks import padding_mask
from transformer_core.probe import SILENT, Probe


def _places(token_ids: Tensor, cache: KeyValueCache | None, causal: bool) -> tuple[Tensor, int]:
    """Return every token read so far (batch, key_pos), the new ones among them, and how many there were before."""
    if cache is None:
        return token_ids, 0
    if not causal:
        raise ValueError("cache was given, but causal=False: what was read before would have to see what comes now")
    start = cache.length
    return cache.read(token_ids), start


class Decoder(nn.Module):
    """Target ids and an encoder's memory to one vector a target position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = InputEmbedding(config, vocab_size=config.target_vocab_size)
        self.stack = Stack(config, DecoderBlock, both_sides=not config.causal)
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Decode a batch.

        Shapes:
            token_ids: (batch, query_pos); memory: (batch, key_pos, d_model)
            mask, memory_mask: boolean, True = may attend, broadcastable to (batch, head, query_pos, key_pos); a mask
                that is given takes the place of padding and causal mask together
            returns: (batch, query_pos, d_model)

        Args:
            cache: what was kept of the tokens before these, to which these are added.

        Raises:
            ValueError: as Encoder; memory of another batch size; a cache where causal is False.
        """
        seen, start = _places(token_ids, cache, self.config.causal)
        x = self.embedding(token_ids, start=start, probe=probe.at("embedding"))
        if memory.shape[0] != token_ids.shape[0]:
            raise ValueError(f"memory has a batch of {memory.shape[0]}; token_ids has {token_ids.shape[0]}")
        causal = self.config.causal and mask is None
        if mask is None:
            mask = padding_mask(seen, self.config.padding)
        return self.stack(x, memory, mask=mask, memory_mask=memory_mask, causal=causal, cache=cache, probe=probe)


class MaskedDecoder(nn.Module):
    """Token ids to one vector per position that knows nothing of later positions; no cross-attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = InputEmbedding(config)
        self.stack = Stack(config, EncoderBlock, both_sides=not config.causal)
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        wanted: slice | None = None,
        stream: Stream | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Decode a batch.

        Shapes:
            token_ids: (batch, pos)
            mask: as in Decoder
            returns: (batch, pos, d_model), or the wanted positions

        Args:
            cache: as in Decoder.
            wanted, stream: as in Encoder; not together with a cache.

        Raises:
            ValueError: as Encoder; a cache where causal is False.
        """
        seen, start = _places(token_ids, cache, self.config.causal)
        if stream is None:
            x = self.embedding(token_ids, start=start, probe=probe.at("embedding"))
        else:
            x = stream.entering(token_ids, self.config)
        causal = self.config.causal and mask is None
        if mask is None:
            mask = padding_mask(seen, self.config.padding)
        return self.stack(x, mask=mask, causal=causal, cache=cache, wanted=wanted, stream=stream, probe=probe)
