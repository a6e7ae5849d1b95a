"""Configurations of the recurrent models: every size and choice, checked once when it is made.

Names follow Bahdanau et al. 2015, appendix A.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from transformer_core.config import LARGEST, PADDED, require_choice

Unit = Literal["tanh", "gru", "lstm"]
Alignment = Literal["dot_product", "additive"]
Summary = Literal["last", "mean"]
LARGEST_DEVIATION = 10.0
SIZES = {name: LARGEST[name] for name in ("vocab_size", "d_model", "max_len")} | {"d_hidden": 65_536}


def _padding(config: Any) -> int:
    """What stands for padding in token ids, where the state stays: pad_id, or PADDED where there is none."""
    return PADDED if config.pad_id is None else config.pad_id


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Every size and choice that shapes a Seq2Seq.

    Args:
        vocab_size: entries of the one vocabulary that source and target share.
        d_model: width of an embedding.
        d_hidden: width of the hidden state, of each direction of the encoder and of the decoder; the alignment
            compares vectors of this width.
        unit: "gru", "lstm", or "tanh", the plain recurrent network.
        bidirectional: the encoder also reads from the end to the beginning.
        attention: None gives the decoder one summary of the sentence (Cho et al. 2014), "dot_product" and "additive"
            (Bahdanau et al. 2015) a mixture of the encoder's states, another one for each target word.
        max_len: most positions a sentence may have.
        dropout: probability of dropping an entry in training, in [0, 1).
        pad_id: id of the padding token, or None where the vocabulary has none.
        tied_output: the output matrix is the embedding's.
        initial_deviation: None starts weights as initialize_recurrent says; a number draws every matrix from
            N(0, its square), with biases of 0.

    Raises:
        ValueError: a value outside its range.
    """

    vocab_size: int
    d_model: int = 128
    d_hidden: int = 128
    unit: Unit = "gru"
    bidirectional: bool = True
    attention: Alignment | None = "additive"
    max_len: int = 128
    dropout: float = 0.1
    pad_id: int | None = 0
    tied_output: bool = True
    initial_deviation: float | None = None
    padding = property(_padding)

    def __post_init__(self) -> None:
        _require_common(self)
        if self.attention is not None:
            require_choice("attention", self.attention, get_args(Alignment))
        _require_switches(self, "bidirectional", "tied_output")

    @property
    def d_memory(self) -> int:
        """Width of the encoder's output at a position: both directions concatenated."""
        return self.d_hidden * (2 if self.bidirectional else 1)


@dataclass(frozen=True, kw_only=True)
class RecurrentLmConfig:
    """Every size and choice that shapes a RecurrentLm.

    Args:
        vocab_size: entries of the vocabulary.
        d_model: width of an embedding.
        d_hidden: width of the hidden state.
        unit: as in RecurrentConfig.
        max_len: length of the windows that it is trained on and that the app reads; the network has no positions to
            run out of, and reads on beyond it.
        dropout: probability of dropping an entry in training, in [0, 1).
        pad_id: id of the padding token, or None where the vocabulary has none.
        initial_deviation: as in RecurrentConfig.
        one_hot: as textbooks write it out: a word enters as its one-hot vector, and a gate has one bias, not two;
            there is no embedding, so that d_model says nothing.

    Raises:
        ValueError: a value outside its range.
    """

    vocab_size: int
    d_model: int = 128
    d_hidden: int = 256
    unit: Unit = "gru"
    max_len: int = 128
    dropout: float = 0.1
    pad_id: int | None = 0
    initial_deviation: float | None = None
    one_hot: bool = False
    padding = property(_padding)

    def __post_init__(self) -> None:
        _require_common(self)
        _require_switches(self, "one_hot")


@dataclass(frozen=True, kw_only=True)
class RecurrentClassifierConfig:
    """Every size and choice that shapes a RecurrentClassifier.

    Args:
        vocab_size, d_model, d_hidden, unit, bidirectional, max_len, dropout, pad_id, initial_deviation: as in
            RecurrentConfig.
        n_classes: how many classes there are.
        pooling: the sentence's vector is the state after its last word ("last"), or the mean of all its states.

    Raises:
        ValueError: a value outside its range.
    """

    vocab_size: int
    d_model: int = 64
    d_hidden: int = 64
    unit: Unit = "gru"
    bidirectional: bool = False
    n_classes: int = 2
    pooling: Summary = "last"
    max_len: int = 128
    dropout: float = 0.1
    pad_id: int | None = 0
    initial_deviation: float | None = None
    padding = property(_padding)

    def __post_init__(self) -> None:
        _require_common(self)
        _require_whole("n_classes", self.n_classes, 1, LARGEST["n_classes"])
        require_choice("pooling", self.pooling, get_args(Summary))
        _require_switches(self, "bidirectional")


AnyRecurrentConfig = RecurrentConfig | RecurrentLmConfig | RecurrentClassifierConfig


def _require_switches(config: AnyRecurrentConfig, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(config, name), bool):
            raise ValueError(f"{name}={getattr(config, name)!r} must be True or False")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require_common(config: AnyRecurrentConfig) -> None:
    for name, largest in SIZES.items():
        _require_whole(name, getattr(config, name), 1, largest)
    require_choice("unit", config.unit, get_args(Unit))
    if not (_is_number(config.dropout) and 0.0 <= config.dropout < 1.0):
        raise ValueError(f"dropout={config.dropout!r} must be a number, at least 0 and less than 1")
    if config.pad_id is not None:
        _require_whole("pad_id", config.pad_id, 0, config.vocab_size - 1)
    deviation = config.initial_deviation
    if deviation is not None and not (_is_number(deviation) and 0.0 < deviation <= LARGEST_DEVIATION):
        raise ValueError(
            f"initial_deviation={deviation!r} must be None, or more than 0 and at most {LARGEST_DEVIATION:g}"
        )


def _require_whole(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}={value!r} must be a whole number from {least} to {most}")
