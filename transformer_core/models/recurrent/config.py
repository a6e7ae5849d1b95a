"""Configurations of the recurrent models: every size and choice, checked once when it is made.

Names follow Bahdanau et al. 2015, appendix A.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from transformer_core.config import PADDED, Classes, MaxLen, VocabSize, Width
from transformer_core.untrusted.schema import Probability, check_fields

Unit = Literal["tanh", "gru", "lstm"]
Alignment = Literal["dot_product", "additive"]
Summary = Literal["last", "mean"]
Deviation = Annotated[float, Meta(gt=0, le=10, description="None, or more than 0 and at most 10")]


@dataclass(frozen=True, kw_only=True)
class RecurrentBase:
    """What shapes every recurrent model.

    Args:
        vocab_size: entries of the vocabulary; of a Seq2Seq source and target share one.
        d_model: width of an embedding.
        d_hidden: width of the hidden state; of each direction, where there are two.
        unit: "gru", "lstm", or "tanh", the plain recurrent network.
        max_len: most positions a text may have; of a language model the length of the windows that it is trained on and
            that the app reads, since it has no positions to run out of, and reads on beyond it.
        dropout: probability of dropping an entry in training, in [0, 1).
        pad_id: id of the padding token, or None where the vocabulary has none.
        initial_deviation: None starts weights as initialize_recurrent says; a number draws every matrix from
            N(0, its square), with biases of 0.

    Raises:
        ValueError: a value outside its range.
    """

    vocab_size: VocabSize
    d_model: Width = 128
    d_hidden: Width = 128
    unit: Unit = "gru"
    max_len: MaxLen = 128
    dropout: Probability = 0.1
    pad_id: int | None = 0
    initial_deviation: Deviation | None = None

    def __post_init__(self) -> None:
        check_fields(self, "pad_id")
        most = self.vocab_size - 1
        if self.pad_id is not None and not (type(self.pad_id) is int and 0 <= self.pad_id <= most):
            raise ValueError(f"pad_id={self.pad_id!r} must be a whole number from 0 to {most}")

    @property
    def padding(self) -> int:
        """What stands for padding in token ids, where the state stays: pad_id, or PADDED where there is none."""
        return PADDED if self.pad_id is None else self.pad_id


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(RecurrentBase):
    """Every size and choice that shapes a Seq2Seq, beside those of RecurrentBase.

    Args:
        bidirectional: the encoder also reads from the end to the beginning.
        attention: None gives the decoder one summary of the sentence (Cho et al. 2014), "dot_product" and "additive"
            (Bahdanau et al. 2015) a mixture of the encoder's states, another one for each target word; vectors of width
            d_hidden are compared.
        tied_output: the output matrix is the embedding's.
    """

    bidirectional: bool = True
    attention: Alignment | None = "additive"
    tied_output: bool = True

    @property
    def d_memory(self) -> int:
        """Width of the encoder's output at a position: both directions concatenated."""
        return self.d_hidden * (2 if self.bidirectional else 1)


@dataclass(frozen=True, kw_only=True)
class RecurrentLmConfig(RecurrentBase):
    """Every size and choice that shapes a RecurrentLm, beside those of RecurrentBase.

    Args:
        one_hot: as textbooks write it out: a word enters as its one-hot vector, and a gate has one bias, not two;
            there is no embedding, so that d_model says nothing.
    """

    d_hidden: Width = 256
    one_hot: bool = False


@dataclass(frozen=True, kw_only=True)
class RecurrentClassifierConfig(RecurrentBase):
    """Every size and choice that shapes a RecurrentClassifier, beside those of RecurrentBase.

    Args:
        bidirectional: as in RecurrentConfig.
        n_classes: how many classes there are.
        pooling: the sentence's vector is the state after its last word ("last"), or the mean of all its states.
    """

    d_model: Width = 64
    d_hidden: Width = 64
    bidirectional: bool = False
    n_classes: Classes = 2
    pooling: Summary = "last"
