"""Arrival: a zip from elsewhere, of which nothing is believed before it was checked.

Only names that a run has are unpacked; the database is not taken over but read row by row into a new one.
Read next: arrived_rows.py.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from transformer_core.checkpoints import MODELS, load, load_weights
from transformer_core.config import ModelConfig
from transformer_core.text import Tokenizer
from transformer_core.training.runs.arrived_rows import take_rows
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.folder import (
    ABOUT,
    BUNDLE,
    DATABASE,
    FRAMES,
    ID,
    MOST_BYTES_OF_DATA,
    ORIGIN,
    SCRIPT,
    SPEC,
    STATE,
    TAKEN_NAMES,
    TOKENIZER,
    new_id,
)
from transformer_core.training.runs.spec import RunSpec

MB = 1 << 20
MOST_PACKED, MOST_UNPACKED, MOST_ENTRIES = 500 * MB, 1_024 * MB, 256
WEIGHTS, FOREIGN = 400 * MB, "foreign.sqlite"
LINK = 0o120000
SIZES = {
    re.escape(ABOUT): MB,
    re.escape(SPEC): MB,
    re.escape(SCRIPT): MB,
    re.escape(DATABASE): 400 * MB,
    re.escape(TOKENIZER): 32 * MB,
    re.escape(ORIGIN): WEIGHTS,
    rf"{FRAMES}/[0-9]{{3}}\.safetensors": WEIGHTS,
    rf"{BUNDLE}/(config\.json|tokenizer\.json|card\.md)": 32 * MB,
    rf"{BUNDLE}/model\.safetensors": WEIGHTS,
    rf"{STATE}/run\.json": MB,
    rf"{STATE}/[0-9]{{1,9}}\.run\.safetensors": 3 * WEIGHTS,
}
NOT_TAKEN = {ABOUT, SCRIPT, SPEC, DATABASE}


def unpack(file: Path | IO[bytes], folder: Path) -> tuple[RunSpec, str]:
    """Check a zip and lay its run into an empty folder, all but spec.json and run.json, which are written anew.

    Returns:
        The spec and the id.

    Raises:
        RunError: what is wrong with the zip.
    """
    with _opened(file) as archive:
        entries = _entries(archive)
        spec = _spec(archive, entries)
        for name, entry in entries.items():
            limit = _limit(name, spec)
            if entry.file_size > limit:
                raise RunError(f"{name:.100} has {entry.file_size:,} bytes; at most {limit:,} are taken in")
            if name not in NOT_TAKEN:
                _extract(archive, entry, folder / name)
        _extract(archive, entries[DATABASE], folder / FOREIGN)
        about = archive.read(entries[ABOUT]).decode("utf-8", "replace") if ABOUT in entries else ""
    facts = take_rows(folder / FOREIGN, folder, spec)
    (folder / FOREIGN).unlink()
    _check_models(folder, facts)
    named = re.search(r'"id": "([a-z0-9]*)"', about)
    return spec, named[1] if named and ID.fullmatch(named[1]) else new_id()


@contextmanager
def _opened(file: Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    size = file.stat().st_size if isinstance(file, Path) else file.seek(0, 2)
    if size > MOST_PACKED:
        raise RunError(f"the zip has {size:,} bytes; at most {MOST_PACKED:,} are taken in")
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise RunError(f"this is no zip that can be read: {error!s:.200}") from None


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MOST_ENTRIES:
        raise RunError(f"the zip has {len(entries)} files; a run has at most {MOST_ENTRIES}")
    if (total := sum(entry.file_size for entry in entries)) > MOST_UNPACKED:
        raise RunError(f"the zip unpacks to {total:,} bytes; at most {MOST_UNPACKED:,} are taken in")
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        if entry.filename in found:
            raise RunError(f"the zip has {entry.filename!r:.100} twice")
        if (entry.external_attr >> 16) & 0o170000 == LINK:
            raise RunError(f"{entry.filename!r:.100} is a link; a run's files are files")
        found[entry.filename] = entry
    for name in (SPEC, DATABASE):
        if name not in found:
            raise RunError(f"the zip has no {name}: it is not an exported run")
    return found


def _spec(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> RunSpec:
    if entries[SPEC].file_size > SIZES[re.escape(SPEC)]:
        raise RunError(f"{SPEC} has {entries[SPEC].file_size:,} bytes; it must be small")
    try:
        return RunSpec.from_json(archive.read(entries[SPEC]).decode("utf-8"))
    except ValueError as error:
        raise RunError(f"{SPEC}: {error!s:.300}") from None


def _limit(name: str, spec: RunSpec) -> int:
    """Return how large a file of this name may be."""
    if name == spec.data.file and name not in TAKEN_NAMES and not name.startswith("."):
        return MOST_BYTES_OF_DATA
    for pattern, limit in SIZES.items():
        if re.fullmatch(pattern, name):
            return limit
    raise RunError(f"the zip has {name!r:.100}, which no run has")


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    left = entry.file_size
    with archive.open(entry) as source, to.open("wb") as target:
        while block := source.read(min(MB, left + 1)):
            left -= len(block)
            if left < 0:
                raise RunError(f"{entry.filename!r:.100} is larger than it says")
            target.write(block)


def _check_models(folder: Path, facts: dict) -> None:
    """Raise RunError unless every model in the folder can be loaded and is of the kind that the facts name."""
    try:
        if (folder / TOKENIZER).exists():
            Tokenizer.load(folder / TOKENIZER)
        if (folder / BUNDLE).exists():
            load(folder / BUNDLE, device="cpu")
        for path in sorted((folder / FRAMES).glob("*")):
            if not facts:
                raise RunError("the zip has frames but no facts about their model")
            load_weights(path, MODELS[facts["kind"]], ModelConfig(**facts["model"]))
    except RunError:
        raise
    except ValueError as error:
        raise RunError(f"a model in the zip cannot be read: {error!s:.300}") from None
