"""Fixtures of several test files: a small tokenizer, a small bundle, a small checkpoint of another library."""

from pathlib import Path

import pytest
import torch

from tests.helpers.engine import made, shipped, small_tokenizer
from tests.helpers.pretend_device import DEVICES, computing_on
from transformer_core.bundle import Bundle, save
from transformer_core.models import Gpt
from transformer_core.text import Tokenizer


@pytest.fixture(scope="session")
def word_tokenizer() -> Tokenizer:
    """Return a tokenizer of at most 13 words."""
    return small_tokenizer()


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Return a device that is not the processor; one is there on every machine."""
    return computing_on(request.param, monkeypatch)


@pytest.fixture(scope="session")
def sentiment() -> Bundle:
    """Return the shipped classifier; no test may change it."""
    return shipped("sentiment")


@pytest.fixture
def folder(tmp_path, word_tokenizer) -> Path:
    """Return the folder of a sound bundle of a Gpt, called glass."""
    save(Bundle("glass", made(Gpt), word_tokenizer, card="# Glass"), tmp_path / "glass")
    return tmp_path / "glass"


@pytest.fixture(scope="module")
def sound_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint that the library `transformers` wrote."""
    from tests.helpers.open_checkpoints import written

    folder = tmp_path_factory.mktemp("sound")
    written("BertModel", folder)
    return folder


@pytest.fixture
def checkpoint(sound_checkpoint: Path, tmp_path: Path) -> Path:
    """Return a copy of it that may be spoilt."""
    for path in sound_checkpoint.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path
