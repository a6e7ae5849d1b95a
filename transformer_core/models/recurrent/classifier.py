"""RecurrentClassifier: a sentence's class from the state after its last word, or from the mean of all its states.

Elman 1990 (the plain cell); Sutskever et al. 2014, section 2 (a sentence as its last state); Cho et al. 2014 (GRU).
"""

import math

from torch import Tensor, nn

from transformer_core.layers.dropout import Dropout
from transformer_core.layers.embeddings import Embedding, check_ids, rows_of
from transformer_core.layers.masks import real_tokens
from transformer_core.models.output import mean_over_real_tokens
from transformer_core.models.recurrent.config import RecurrentClassifierConfig
from transformer_core.models.recurrent.layers import initialize_recurrent, make_layer
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


class RecurrentClassifier(nn.Module):
    """An embedding, one recurrent layer, and a linear map from the sentence's vector to the classes.

    Where the layer reads both ways, the last state is that of each direction's end, forward first. Embeddings are
    multiplied by sqrt(d_model), as in Seq2Seq.
    """

    def __init__(self, config: RecurrentClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocab_size, config.d_model)
        self.recurrent = make_layer(config.unit, config.d_model, config.d_hidden, bidirectional=config.bidirectional)
        self.class_proj = Linear(config.d_hidden * (2 if config.bidirectional else 1), config.n_classes)
        self.dropout = Dropout(config.dropout)
        self.scale = math.sqrt(config.d_model)
        initialize_recurrent(self, self.embedding, config.initial_deviation)

    def forward(self, token_ids: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Classify a batch; padding leaves the state as it was.

        Shapes:
            token_ids: (batch, pos)
            returns: logits (batch, class)

        Raises:
            ValueError: ids outside the vocabulary, an empty batch, more than max_len positions.
        """
        inner = probe.at("recurrent")
        token_ids = inner.tap("token_ids", token_ids)
        check_ids("token_ids", token_ids, self.config.vocab_size, least=min(0, self.config.padding))
        if token_ids.shape[1] > self.config.max_len:
            raise ValueError(f"token_ids has {token_ids.shape[1]} positions; max_len={self.config.max_len} is the most")
        real = real_tokens(token_ids, self.config.padding)
        embedded = inner.tap("token_embedding", self.embedding(rows_of(token_ids, self.config.pad_id)))
        x = self.dropout(inner.tap("scaled_embedding", embedded * self.scale))
        outputs, ends = self.recurrent(x, real=real, probe=inner)  # (batch, pos, d_memory), (batch, d_memory)
        if self.config.pooling == "last":
            vector = probe.tap("summary", ends[0])
        else:
            vector = probe.tap("mean_embedding", mean_over_real_tokens(outputs, token_ids, self.config.padding))
        return probe.tap("class_logits", self.class_proj(self.dropout(vector)))
