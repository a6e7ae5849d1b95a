"""Ways to damage a bundle or a zip, as an accident or an attacker would."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from transformer_core.checkpoints import load
from transformer_core.untrusted.bundle_files import CARD, CONFIG, TOKENIZER, WEIGHTS, BundleError

FILES = (WEIGHTS, TOKENIZER, CARD, CONFIG)


def rewrite(folder: Path, **changes) -> None:
    """Change entries of config.json."""
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | changes))


def seal(folder: Path) -> None:
    """Write the sizes and hashes of the files as they are now, as an attacker can."""
    contents = {name: (folder / name).read_bytes() for name in (WEIGHTS, TOKENIZER)}
    sealed = {name: {"bytes": len(b), "sha256": hashlib.sha256(b).hexdigest()} for name, b in contents.items()}
    rewrite(folder, files=sealed)


def change_model(folder: Path, **changes) -> None:
    """Change the sizes and choices in config.json."""
    rewrite(folder, model=json.loads((folder / CONFIG).read_text())["model"] | changes)


def change_weights(folder: Path, change) -> None:
    """Let `change` work on the tensors by name, and seal the result."""
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)
    seal(folder)


def refused(folder: Path, *parts: str, **options) -> None:
    """Assert that loading fails with BundleError itself, saying every part and little more."""
    with pytest.raises(BundleError) as caught:
        load(folder, **options)
    for part in parts:
        assert part in str(caught.value)
    assert len(str(caught.value)) < 600


def zipped(files: Mapping[str, bytes], change: Callable[[zipfile.ZipInfo], None] | None = None) -> io.BytesIO:
    """Return files, by name, as a zip; `change` may spoil the entry of each."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            if change is not None:
                change(entry)
            archive.writestr(entry, content)
    packed.seek(0)
    return packed
