"""Before Transformers: recurrent networks, written out, and the encoder-decoder that attention was invented for.

Cho et al. 2014; Hochreiter and Schmidhuber 1997; Bahdanau et al. 2015.
"""

from transformer_core.models.recurrent.config import RecurrentConfig
from transformer_core.models.recurrent.layers import Bidirectional, Gru, Lstm, Rnn
from transformer_core.models.recurrent.seq2seq import Seq2Seq

__all__ = ["Bidirectional", "Gru", "Lstm", "RecurrentConfig", "Rnn", "Seq2Seq"]
