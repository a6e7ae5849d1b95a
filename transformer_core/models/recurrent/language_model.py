"""RecurrentLm: a recurrent network that scores the next word, the language model before the Transformer.

Mikolov et al. 2010 (the plain network); Sundermeyer et al. 2012 (the LSTM).
"""

import math

from torch import Tensor, nn

from transformer_core.layers.dropout import Dropout
from transformer_core.layers.embeddings import Embedding, OneHot, check_ids, rows_of
from transformer_core.layers.masks import real_tokens
from transformer_core.models.recurrent.cells import CELLS, State
from transformer_core.models.recurrent.config import RecurrentLmConfig
from transformer_core.models.recurrent.layers import Recurrent, initialize_recurrent
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


class RecurrentLm(nn.Module):
    """An embedding, one recurrent layer, and a matrix from its hidden state to the vocabulary.

    p(w_{t+1} | w_1 ... w_t) = softmax(V h_t + b)  (Mikolov et al. 2010, eqs. 3 and 5, without the b)

    Departure: the paper's hidden units are sigmoids, here they are those of config.unit; its words enter by one matrix,
    here by an embedding and the cell's, unless config.one_hot. Embeddings are multiplied by sqrt(d_model), as in
    Seq2Seq.
    """

    def __init__(self, config: RecurrentLmConfig) -> None:
        super().__init__()
        self.config = config
        one_hot = config.one_hot
        self.embedding = OneHot(config.vocab_size) if one_hot else Embedding(config.vocab_size, config.d_model)
        d_input = config.vocab_size if one_hot else config.d_model
        self.recurrent = Recurrent(CELLS[config.unit](d_input, config.d_hidden, one_bias=one_hot))
        self.output = Linear(config.d_hidden, config.vocab_size)
        self.dropout = Dropout(config.dropout)
        self.scale = 1.0 if one_hot else math.sqrt(config.d_model)
        initialize_recurrent(self, self.embedding, config.initial_deviation)

    def forward(self, token_ids: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Score the word after each position.

        Shapes:
            token_ids: (batch, pos), of any length
            returns: (batch, pos, vocab)

        Raises:
            ValueError: ids outside the vocabulary, or an empty batch.
        """
        return self.read(token_ids, None, probe=probe)[0]

    def read(self, token_ids: Tensor, state: State | None, *, probe: Probe = SILENT) -> tuple[Tensor, State]:
        """Read words on from a state; padding leaves the state as it was.

        Shapes:
            token_ids: (batch, pos)
            state: as in Recurrent; None before the first word
            returns: the logits (batch, pos, vocab) of the word after each, and the state after the last
        """
        inner = probe.at("recurrent")
        token_ids = inner.tap("token_ids", token_ids)
        check_ids("token_ids", token_ids, self.config.vocab_size, least=min(0, self.config.padding))
        real = real_tokens(token_ids, self.config.padding)
        rows = rows_of(token_ids, self.config.pad_id)
        if self.config.one_hot:
            x = inner.tap("one_hot", self.embedding(rows))  # (batch, pos, vocab)
        else:
            embedded = inner.tap("token_embedding", self.embedding(rows))
            x = self.dropout(inner.tap("scaled_embedding", embedded * self.scale))
        hidden, last = self.recurrent(x, state, real=real, probe=inner)  # (batch, pos, d_hidden)
        return probe.tap("logits", self.output(self.dropout(hidden))), last

    def start(self, source_ids: Tensor) -> State:
        """Read what comes before the first word that `advance` is given, (batch, pos), where pos may be 0."""
        if source_ids.shape[1]:
            return self.read(source_ids, None)[1]
        return self.recurrent.cell.initial_state(self.embedding(source_ids))

    def advance(self, token_ids: Tensor, state: State, *, probe: Probe = SILENT) -> tuple[Tensor, State]:
        """Read the next words and score the one after them; see generation/writer.py.

        Shapes:
            token_ids: (batch, pos); returns: (batch, vocab)
        """
        logits, state = self.read(token_ids, state, probe=probe)
        return logits[:, -1], state

    def reorder(self, state: State, rows: Tensor) -> State:
        """Return the state of these rows of the batch, (new_batch,), in this order; a row may occur more than once."""
        return tuple(part[rows] for part in state)

    def has_room(self, state: State, count: int) -> bool:
        """Return True: a state of one size stands for a text of any length, so that it can always read on."""
        return True
