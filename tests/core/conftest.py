"""A small tokenizer, a small bundle, a small checkpoint of another library, a finished run: for whoever needs one."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.core.tools.helpers import made
from transformer_core.bundle import Bundle, save
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


@pytest.fixture(scope="module")
def sound_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint that the library `transformers` wrote."""
    from tests.core.tools.open_checkpoints import written

    folder = tmp_path_factory.mktemp("sound")
    written("BertModel", folder)
    return folder


@pytest.fixture
def checkpoint(sound_checkpoint: Path, tmp_path: Path) -> Path:
    """Return a copy of it that may be spoilt."""
    for path in sound_checkpoint.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory):
    """Return a finished run, and its zip as names and bytes."""
    from tests.core.runs_tools import WITH_DATA, first_two, tiny_task
    from transformer_core.training.runs.shelf import Shelf
    from transformer_core.training.runs.sitting import Sitting

    shelf = Shelf(tmp_path_factory.mktemp("runs"))
    store, packed = shelf.create(WITH_DATA, data=b"text,label\n" * 50), io.BytesIO()
    Sitting(store, tiny_task, first_two).work()
    shelf.export_zip(store.id, packed)
    with zipfile.ZipFile(packed) as archive:
        return store, {name: archive.read(name) for name in archive.namelist()}
