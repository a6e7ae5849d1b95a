"""A small tokenizer and a small bundle, for whoever needs one."""

from pathlib import Path

import pytest

from tests.core.helpers import made
from transformer_core.checkpoints import Bundle, save
from transformer_core.models import Gpt
from transformer_core.text import Tokenizer


@pytest.fixture(scope="session")
def word_tokenizer() -> Tokenizer:
    """Return a tokenizer of at most 13 words."""
    return Tokenizer.train("word", ["a glass box", "a glass bell", "a box"] * 3, vocab_size=13)


@pytest.fixture
def folder(tmp_path, word_tokenizer) -> Path:
    """Return the folder of a sound bundle of a Gpt, called glass."""
    save(Bundle("glass", made(Gpt), word_tokenizer, card="# Glass"), tmp_path / "glass")
    return tmp_path / "glass"
