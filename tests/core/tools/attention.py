"""A small classifier with its tokenizer, and made-up weights, for the tests of what attention does."""

from functools import lru_cache
from typing import Any

import numpy as np

from tests.core.tools.helpers import made
from transformer_core.bundle import Bundle
from transformer_core.models import Classifier
from transformer_core.text import Tokenizer


@lru_cache(maxsize=4)
def small_tokenizer() -> Tokenizer:
    """Return a tokenizer of at most 13 words."""
    return Tokenizer.train("word", ["a glass box", "a glass bell", "a box"] * 3, vocab_size=13)


def small_bundle(**changes: Any) -> Bundle:
    """Return a classifier that nobody trained."""
    return Bundle("glass", made(Classifier, **changes), small_tokenizer(), ("no", "yes"))


def random_weights(layers: int, heads: int, n: int, seed: int = 0) -> np.ndarray:
    """Return rows that sum to 1, of shape (layer, head, query_pos, key_pos)."""
    raw = np.random.default_rng(seed).random((layers, heads, n, n))
    return raw / raw.sum(-1, keepdims=True)
