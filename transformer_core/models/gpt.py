"""GPT: a masked decoder that scores the next word.

Radford et al. 2018 and 2019.
Read next: transformer_core/generation/writer.py
"""

from dataclasses import replace

from torch import Tensor, nn

from transformer_core.config import ModelConfig, require_range
from transformer_core.layers.blocks import Stream
from transformer_core.layers.cache import KeyValueCache
from transformer_core.layers.initialization import initialize, shapes_alone
from transformer_core.models.decoder import MaskedDecoder
from transformer_core.models.output import WordScores
from transformer_core.probe import SILENT, Probe


class Gpt(nn.Module):
    """A masked decoder and an output matrix, tied to the embedding or free."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.decoder = MaskedDecoder(config)
        token, tied = self.decoder.embedding.token, config.tied_output
        self.output = WordScores(
            token, config.d_model, tied=tied, bias=False, cap=config.logit_cap, scaled=config.scale_output
        )
        initialize(self)

    def forward(
        self,
        token_ids: Tensor,
        *,
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        wanted: slice | None = None,
        scored: slice | None = None,
        stream: Stream | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Score the word after each position.

        Shapes:
            token_ids: (batch, pos); mask: as in Decoder
            returns: (batch, pos, vocab), or the wanted positions, or the scored ones of these

        Args:
            cache, wanted, stream: as in MaskedDecoder.
            scored: the positions whose next word is scored, after a pass over all; of a large vocabulary that is most
                of the work.

        Raises:
            ValueError: as MaskedDecoder.
        """
        x = self.decoder(token_ids, mask=mask, cache=cache, wanted=wanted, stream=stream, probe=probe.at("decoder"))
        return self.output(x if scored is None else x[:, scored], probe=probe)

    def start(self, source_ids: Tensor) -> KeyValueCache:
        """Read what comes before the first word that `advance` is given, (batch, pos), where pos may be 0."""
        cache = KeyValueCache(self.config.n_layers)
        if source_ids.shape[1]:
            self._read(source_ids, cache)
        return cache

    def read(self, token_ids: Tensor, state: KeyValueCache, *, probe: Probe = SILENT) -> tuple[Tensor, KeyValueCache]:
        """Read the next words and score the one after each.

        Shapes:
            token_ids: (batch, pos); returns: (batch, pos, vocab)
        """
        state = state.picked()
        x = self._read(token_ids, state, probe)
        return self.output(x[:, -token_ids.shape[1] :], probe=probe), state

    def advance(
        self, token_ids: Tensor, state: KeyValueCache, *, probe: Probe = SILENT
    ) -> tuple[Tensor, KeyValueCache]:
        """Read the next words and score the one after them; see generation/writer.py.

        Shapes:
            token_ids: (batch, pos); returns: (batch, vocab)
        """
        state = state.picked()
        x = self._read(token_ids, state, probe)
        return self.output(x[:, -1:], probe=probe)[:, 0], state

    def reorder(self, state: KeyValueCache, rows: Tensor) -> KeyValueCache:
        """Return the state of these rows of the batch, in this order."""
        return state.picked(rows)

    def has_room(self, state: KeyValueCache, count: int) -> bool:
        """Return whether max_len leaves room for so many more words."""
        return state.length + count <= self.config.max_len

    def first_layers(self, count: int) -> "Gpt":
        """Return a model of the first layers, the last norm and the output matrix; it shares their weights.

        Raises:
            ValueError: count is not from 1 to n_layers.
        """
        require_range("count", count, 1, self.config.n_layers)
        with shapes_alone():
            short = Gpt(replace(self.config, n_layers=count, windows=self.config.windows[:count]))
        short.decoder.embedding, short.output = self.decoder.embedding, self.output
        short.decoder.stack.final_norm = self.decoder.stack.final_norm
        short.decoder.stack.layers = nn.ModuleList(self.decoder.stack.layers[:count])
        return short.train(self.training)

    def _read(self, token_ids: Tensor, cache: KeyValueCache, probe: Probe = SILENT) -> Tensor:
        if not self.config.causal:
            return self.decoder(cache.read(token_ids), probe=probe.at("decoder"))
        return self.decoder(token_ids, cache=cache, probe=probe.at("decoder"))
