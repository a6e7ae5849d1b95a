"""The recurrent language model that textbooks write out, one-hot vectors in, beside the same with an embedding."""

from dataclasses import dataclass
from functools import lru_cache

from transformer_core.layers.initialization import shapes_alone
from transformer_core.models.recurrent import RecurrentLm, RecurrentLmConfig

UNITS = 256


@dataclass(frozen=True)
class Textbook:
    """Parameters of a GRU of 256 units that reads characters.

    Args:
        one_hot: with one-hot vectors and one bias a gate.
        embedded: with an embedding as wide as the state and two biases a gate.
    """

    one_hot: int
    embedded: int


@lru_cache(maxsize=8)
def textbook(*, vocab_size: int) -> Textbook:
    """Count the parameters of both networks.

    Args:
        vocab_size: entries of the vocabulary.
    """

    def count(one_hot: bool) -> int:
        config = RecurrentLmConfig(vocab_size=vocab_size, d_model=UNITS, d_hidden=UNITS, one_hot=one_hot)
        with shapes_alone():
            return sum(parameter.numel() for parameter in RecurrentLm(config).parameters())

    return Textbook(count(True), count(False))
