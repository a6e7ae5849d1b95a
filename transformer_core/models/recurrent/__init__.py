"""Before Transformers: recurrent networks, written out, as language models and as encoder and decoder.

Cho et al. 2014; Hochreiter and Schmidhuber 1997; Bahdanau et al. 2015; Mikolov et al. 2010.
"""

from transformer_core.models.recurrent.classifier import RecurrentClassifier
from transformer_core.models.recurrent.config import (
    RecurrentClassifierConfig,
    RecurrentConfig,
    RecurrentLmConfig,
)
from transformer_core.models.recurrent.language_model import RecurrentLm
from transformer_core.models.recurrent.layers import Bidirectional, Gru, Lstm, Rnn
from transformer_core.models.recurrent.seq2seq import Seq2Seq

__all__ = [
    "Bidirectional",
    "Gru",
    "Lstm",
    "RecurrentClassifier",
    "RecurrentClassifierConfig",
    "RecurrentConfig",
    "RecurrentLm",
    "RecurrentLmConfig",
    "Rnn",
    "Seq2Seq",
]
