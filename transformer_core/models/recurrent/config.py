"""RecurrentConfig and RecurrentLmConfig: every size and choice of a recurrent model, checked once when it is made.

Names follow Bahdanau et al. 2015, appendix A.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from transformer_core.config import LARGEST, require_choice

Unit = Literal["tanh", "gru", "lstm"]
Alignment = Literal["dot_product", "additive"]
SIZES = {name: LARGEST[name] for name in ("vocab_size", "d_model", "max_len")} | {"d_hidden": 65_536}


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

    def __post_init__(self) -> None:
        _require_common(self)
        if self.attention is not None:
            require_choice("attention", self.attention, get_args(Alignment))
        for name in ("bidirectional", "tied_output"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False")

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

    def __post_init__(self) -> None:
        _require_common(self)


def _require_common(config: RecurrentConfig | RecurrentLmConfig) -> None:
    for name, largest in SIZES.items():
        _require_whole(name, getattr(config, name), 1, largest)
    require_choice("unit", config.unit, get_args(Unit))
    is_number = isinstance(config.dropout, int | float) and not isinstance(config.dropout, bool)
    if not (is_number and 0.0 <= config.dropout < 1.0):
        raise ValueError(f"dropout={config.dropout!r} must be a number, at least 0 and less than 1")
    if config.pad_id is not None:
        _require_whole("pad_id", config.pad_id, 0, config.vocab_size - 1)


def _require_whole(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}={value!r} must be a whole number from {least} to {most}")
