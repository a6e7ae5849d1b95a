"""Tiny bundles: recurrent translators and a Transformer that share a tokenizer, and language models of characters."""

import pytest

from tests.helpers.engine import made
from transformer_core.bundle import Bundle
from transformer_core.models import Translation
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
from transformer_core.text import Tokenizer

SENTENCE = "a cat sat on the mat"


@pytest.fixture(scope="package")
def tokenizer() -> Tokenizer:
    """Return a tokenizer of a few words that marks both ends of a text."""
    return Tokenizer.train("word", [SENTENCE, "le chat dort"], min_frequency=1, template="bos_eos")


@pytest.fixture(scope="package")
def bundle_of(tokenizer: Tokenizer):
    """Return what makes a bundle of a tiny Seq2Seq."""

    def make(**changes) -> Bundle:
        model = made(Seq2Seq, vocab_size=tokenizer.vocab_size, **changes)
        return Bundle("old", model.requires_grad_(False), tokenizer)

    return make


@pytest.fixture(scope="package")
def transformer(tokenizer: Tokenizer) -> Bundle:
    """Return a bundle of a tiny Translation."""
    return Bundle("new", made(Translation, vocab_size=tokenizer.vocab_size).requires_grad_(False), tokenizer)


@pytest.fixture(scope="package")
def lm_of():
    """Return what makes a bundle of a tiny RecurrentLm on characters."""
    characters = Tokenizer.train("character", [SENTENCE], min_frequency=1, template="none")

    def make(name: str = "lm", **changes) -> Bundle:
        model = made(RecurrentLm, vocab_size=characters.vocab_size, max_len=24, **changes)
        return Bundle(name, model.requires_grad_(False), characters)

    return make
