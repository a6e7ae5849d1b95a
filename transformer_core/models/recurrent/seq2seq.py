"""Seq2Seq: a sentence is read by one recurrent network and written in another language by a second.

Cho et al. 2014 and Sutskever et al. 2014 (without attention); Bahdanau et al. 2015 (with it).
"""

import math

from torch import Tensor, nn

from transformer_core.layers.dropout import Dropout
from transformer_core.layers.embeddings import Embedding, check_ids, rows_of
from transformer_core.layers.masks import real_tokens
from transformer_core.models.output import WordScores
from transformer_core.models.recurrent.config import RecurrentConfig
from transformer_core.models.recurrent.decoder import Place, RecurrentDecoder
from transformer_core.models.recurrent.layers import initialize_recurrent, make_layer
from transformer_core.probe import SILENT, Probe


class Seq2Seq(nn.Module):
    """The encoder-decoder before the Transformer: recurrent on both sides, one embedding for both.

    Departure: source and target share one vocabulary and one matrix, as the Transformer's do here, and embeddings are
    multiplied by sqrt(d_model), as the Transformer's are (Vaswani et al. 2017, section 3.4): without it they start so
    small that training hardly moves.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocab_size, config.d_model)
        self.encoder = make_layer(config.unit, config.d_model, config.d_hidden, bidirectional=config.bidirectional)
        self.decoder = RecurrentDecoder(config)
        self.output = WordScores(self.embedding, config.d_model, tied=config.tied_output, bias=False)
        self.dropout = Dropout(config.dropout)
        self.scale = math.sqrt(config.d_model)
        initialize_recurrent(self, self.embedding, config.initial_deviation)

    def start(self, source_ids: Tensor, *, probe: Probe = SILENT) -> Place:
        """Read the source and return the decoder's place before the first target word.

        Shapes:
            source_ids: (batch, source_pos)

        Raises:
            ValueError: ids outside the vocabulary, an empty batch, more than max_len positions.
        """
        real = real_tokens(source_ids, self.config.padding)
        inner = probe.at("encoder")
        outputs, ends = self.encoder(self._embed("source_ids", source_ids, inner), real=real, probe=inner)
        annotations = inner.tap("annotations", outputs)  # (batch, source_pos, d_memory)
        summary = inner.tap("summary", ends[0])  # (batch, d_memory)
        return self.decoder.start(self.dropout(annotations), summary, real, probe=probe.at("decoder"))

    def advance(self, token_ids: Tensor, place: Place) -> tuple[Tensor, Place]:
        """Read the next target words, (batch, target_pos): the logits (batch, vocab) after them, and the new place."""
        logits, place = self.read(token_ids, place)
        return logits[:, -1], place

    def reorder(self, place: Place, rows: Tensor) -> Place:
        """Return the place of these rows of the batch, (new_batch,), in this order; a row may occur more than once."""
        return place.rows(rows)

    def read(self, target_ids: Tensor, place: Place, *, probe: Probe = SILENT) -> tuple[Tensor, Place]:
        """Read target words on from a place.

        Shapes:
            target_ids: (batch, target_pos)
            returns: the logits (batch, target_pos, vocab) of the word after each, and the place after the last
        """
        inner = probe.at("decoder")
        readout, place = self.decoder(self._embed("target_ids", target_ids, inner), place, probe=inner)
        return self.output(readout, probe=probe), place

    def forward(self, source_ids: Tensor, target_ids: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Score a batch of sentence pairs.

        Shapes:
            source_ids: (batch, source_pos); target_ids: (batch, target_pos)
            returns: (batch, target_pos, vocab)

        Raises:
            ValueError: as start.
        """
        return self.read(target_ids, self.start(source_ids, probe=probe), probe=probe)[0]

    def _embed(self, name: str, ids: Tensor, probe: Probe) -> Tensor:
        ids = probe.tap("token_ids", ids)
        check_ids(name, ids, self.config.vocab_size, least=min(0, self.config.padding))
        if ids.shape[1] > self.config.max_len:
            raise ValueError(f"{name} has {ids.shape[1]} positions; max_len={self.config.max_len} is the most")
        embedded = probe.tap("token_embedding", self.embedding(rows_of(ids, self.config.pad_id)))
        return self.dropout(probe.tap("scaled_embedding", embedded * self.scale))
