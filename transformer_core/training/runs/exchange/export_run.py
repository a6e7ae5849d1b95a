"""Export: a run as one zip, its database copied as of one moment even while it is being written.

Read next: arrival.py.
"""

import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.store.database import open_reader
from transformer_core.training.runs.store.folder import (
    ABOUT,
    BUNDLE,
    DATABASE,
    FRAMES,
    ORIGIN,
    SCRIPT,
    SPEC,
    STATE,
    TOKENIZER,
)
from transformer_core.training.runs.store.run_store import RunStore

INCOMPRESSIBLE = ".safetensors"
PLAIN_RIGHTS = 0o100644 << 16


def export_run(store: RunStore, to: Path | IO[bytes]) -> None:
    """Write a run as a zip.

    What going on takes is left out of a finished run, and of one that has a worker, which changes it.

    Raises:
        RunError: the run has not begun, or cannot be read, or the zip cannot be written.
    """
    with in_words(f"run {store.id} cannot be exported"), tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch) / DATABASE
        _copy_database(store, database)
        with zipfile.ZipFile(to, "w") as archive:
            _add(archive, database, DATABASE)
            for path in _files_of(store):
                _add(archive, path, path.relative_to(store.folder).as_posix())


def _copy_database(store: RunStore, to: Path) -> None:
    source = open_reader(store.folder / DATABASE)
    if source is None:
        raise RunError(f"run {store.id} has not begun; there is nothing to export")
    with closing(source), closing(sqlite3.connect(to)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")


def _files_of(store: RunStore) -> Iterator[Path]:
    folder, status = store.folder, store.status()
    names = [ABOUT, SPEC, TOKENIZER, ORIGIN, SCRIPT, *filter(None, [store.spec.data.file])]
    yield from (folder / name for name in names if (folder / name).is_file())
    parts = [FRAMES, BUNDLE, *([] if status.alive or status.state == "finished" else [STATE])]
    for part in parts:
        yield from sorted(path for path in (folder / part).glob("[!.]*") if path.is_file())


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> None:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = PLAIN_RIGHTS
    entry.compress_type = zipfile.ZIP_STORED if path.suffix == INCOMPRESSIBLE else zipfile.ZIP_DEFLATED
    with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
        while block := source.read(1 << 20):
            target.write(block)
