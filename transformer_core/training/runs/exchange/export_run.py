"""Exporting a run as one zip: JSON lines and .npz in place of its database, all of one moment though it may still grow.

The records are lines like {"frame": {"number": 3, ...}}; their arrays are named after them, as embeddings_003.
"""

import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import numpy as np

from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.store.database import COUNT, FLOAT, from_blob, open_reader, read_histograms
from transformer_core.training.runs.store.folder import (
    ABOUT,
    ARRAYS,
    BUNDLE,
    DATABASE,
    FRAMES,
    ORIGIN,
    RECORDS,
    SCRIPT,
    SPEC,
    START,
    STATE,
    TOKENIZER,
)
from transformer_core.training.runs.store.run_store import RunStore

FORMAT = 2  # 1 was a copy of the database
CURVES = {"step": np.dtype("<i8")} | dict.fromkeys(
    ("loss", "learning_rate", "gradient_norm", "seconds"), np.dtype("<f8")
)
INCOMPRESSIBLE = (".safetensors", ".npz")  # floating-point numbers hardly shrink
PLAIN_RIGHTS = 0o100644 << 16
Record = tuple[str, dict[str, Any]]


def export_run(store: RunStore, to: Path | IO[bytes]) -> None:
    """Write a run as a zip.

    The saved state is left out of a finished run, and of one that has a worker, which would change it meanwhile.

    Raises:
        RunError: the run has not begun, or cannot be read, or the zip cannot be written.
    """
    with in_words(f"run {store.id} cannot be exported"), tempfile.TemporaryDirectory() as scratch:
        records, arrays = Path(scratch) / RECORDS, Path(scratch) / ARRAYS
        _write_database(store, records, arrays)
        with zipfile.ZipFile(to, "w") as archive:
            _add(archive, records, RECORDS)
            _add(archive, arrays, ARRAYS)
            for path in _files_of(store):
                _add(archive, path, path.relative_to(store.folder).as_posix())


def array_name(kind: str, frame: int) -> str:
    """Return the name of an array of a frame: "embeddings", "predictions", "counts", "rms" or a method of layouts."""
    return f"{kind}_{frame:03d}"


def _write_database(store: RunStore, records: Path, arrays: Path) -> None:
    source = open_reader(store.folder / DATABASE)
    if source is None:
        raise RunError(f"run {store.id} has not begun; there is nothing to export")
    with closing(source), records.open("w", encoding="utf-8") as lines, zipfile.ZipFile(arrays, "w") as packed:
        source.execute("BEGIN")  # all queries see the same moment
        for kind, values in _records(source, packed):
            lines.write(json.dumps({kind: values}, ensure_ascii=False) + "\n")


def _records(source: sqlite3.Connection, packed: zipfile.ZipFile) -> Iterator[Record]:
    yield "format", {"version": FORMAT}
    names = ("state", "step", "total_steps", "epoch", "seconds", "message", "updated")
    yield "status", dict(zip(names, _rows(source, f"SELECT {', '.join(names)} FROM status")[0], strict=True))
    yield "facts", {name: json.loads(value) for name, value in _rows(source, "SELECT name, value FROM facts")}
    points = _rows(source, "SELECT text, label, held_out FROM points ORDER BY number")
    for text, label, held_out in points:
        yield "point", {"text": text, "label": label, "held_out": bool(held_out)}
    steps = _rows(source, f"SELECT {', '.join(CURVES)} FROM steps ORDER BY step")
    columns = zip(*steps, strict=True) if steps else [()] * len(CURVES)
    for (name, dtype), column in zip(CURVES.items(), columns, strict=True):
        _put(packed, name, np.array(column, dtype=dtype))
    yield "curves", {"steps": len(steps)}
    for number, step, epoch, seconds, measures, published, *blobs in source.execute("SELECT * FROM frames ORDER BY 1"):
        for kind, blob in zip(("embeddings", "predictions"), blobs, strict=True):
            if blob is not None:
                _put(packed, array_name(kind, number), from_blob(blob, len(points)).astype(FLOAT))
        values = {"number": number, "step": step, "epoch": epoch, "seconds": seconds}
        yield "frame", values | {"measures": json.loads(measures), "published": bool(published)}
    for frame, method, measures, xy in source.execute("SELECT frame, method, measures, xy FROM layouts ORDER BY 1, 2"):
        _put(packed, array_name(method, frame), from_blob(xy, len(points)).astype(FLOAT))
        yield "layout", {"frame": frame, "method": method, "measures": json.loads(measures)}
    if not _rows(source, "SELECT 1 FROM sqlite_master WHERE name = 'histograms'"):
        return
    for frame, *values in source.execute("SELECT * FROM histograms ORDER BY 1"):
        found = read_histograms(*values)
        _put(packed, array_name("counts", frame), found.counts.astype(COUNT))
        _put(packed, array_name("rms", frame), found.rms.astype(FLOAT))
        yield "histograms", {"frame": frame, "groups": list(found.groups)}


def _rows(source: sqlite3.Connection, query: str) -> list[tuple]:
    return source.execute(query).fetchall()


def _put(packed: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    with packed.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


def _files_of(store: RunStore) -> Iterator[Path]:
    folder, status = store.folder, store.status()
    names = [ABOUT, SPEC, TOKENIZER, ORIGIN, SCRIPT, *filter(None, [store.spec.data.file])]
    yield from (folder / name for name in names if (folder / name).is_file())
    parts = [FRAMES, BUNDLE, START, *([] if status.alive or status.state == "finished" else [STATE])]
    for part in parts:
        yield from sorted(path for path in (folder / part).glob("[!.]*") if path.is_file())


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> None:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = PLAIN_RIGHTS
    entry.compress_type = zipfile.ZIP_STORED if path.suffix in INCOMPRESSIBLE else zipfile.ZIP_DEFLATED
    with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
        while block := source.read(1 << 20):
            target.write(block)
