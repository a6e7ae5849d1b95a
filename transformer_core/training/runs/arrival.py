"""Arrival: a zip from elsewhere, of which nothing is believed before it was checked.

Only names that a run has are unpacked; the database is not taken over but read row by row into a new one.
Read next: arrived_rows.py.
"""

import re
import zipfile
from pathlib import Path
from typing import IO

from transformer_core import archives
from transformer_core.archives import MB, ArchiveError, extract, open_zip
from transformer_core.bundle import MODELS, load_weights
from transformer_core.checkpoints import load
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

MOST_PACKED, MOST_UNPACKED, MOST_ENTRIES = 500 * MB, 1_024 * MB, 256
WEIGHTS, FOREIGN = 400 * MB, "foreign.sqlite"
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
    try:
        with open_zip(file, most_bytes=MOST_PACKED) as archive:
            spec, about = _lay_out(archive, folder)
    except ArchiveError as error:
        raise RunError(str(error)) from None
    facts = take_rows(folder / FOREIGN, folder, spec)
    (folder / FOREIGN).unlink()
    _check_models(folder, facts)
    named = re.search(r'"id": "([a-z0-9]*)"', about)
    return spec, named[1] if named and ID.fullmatch(named[1]) else new_id()


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found = archives.entries(archive, most=MOST_ENTRIES, most_bytes=MOST_UNPACKED)
    for name in (SPEC, DATABASE):
        if name not in found:
            raise RunError(f"the zip has no {name}: it is not an exported run")
    return found


def _lay_out(archive: zipfile.ZipFile, folder: Path) -> tuple[RunSpec, str]:
    """Unpack what a run has; return its spec and what run.json says."""
    entries = _entries(archive)
    spec = _spec(archive, entries)
    for name, entry in entries.items():
        limit = _limit(name, spec)
        if entry.file_size > limit:
            raise RunError(f"{name:.100} has {entry.file_size:,} bytes; at most {limit:,} are taken in")
        if name not in NOT_TAKEN:
            extract(archive, entry, folder / name)
    extract(archive, entries[DATABASE], folder / FOREIGN)
    about = archive.read(entries[ABOUT]).decode("utf-8", "replace") if ABOUT in entries else ""
    return spec, about


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
