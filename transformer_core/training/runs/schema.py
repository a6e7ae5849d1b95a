"""The database of a run: one SQLite file in WAL mode, so that readers and the one writer never wait for each other.

Embeddings, predictions and places are little-endian float32, row after row. Read next: writer.py.
"""

import sqlite3
from pathlib import Path

import numpy as np

from transformer_core.training.runs.errors import RunError

FORMAT = 1
SECONDS_TO_WAIT = 10.0
TABLES = {
    "status": """CREATE TABLE status (
        id INTEGER PRIMARY KEY CHECK (id = 1), state TEXT NOT NULL, step INTEGER NOT NULL,
        total_steps INTEGER NOT NULL, epoch REAL NOT NULL, seconds REAL NOT NULL, seconds_left REAL,
        message TEXT NOT NULL, queue_place INTEGER NOT NULL, updated REAL NOT NULL, pid INTEGER NOT NULL) STRICT""",
    "steps": """CREATE TABLE steps (
        step INTEGER PRIMARY KEY, loss REAL NOT NULL, learning_rate REAL NOT NULL, gradient_norm REAL NOT NULL,
        seconds REAL NOT NULL) STRICT""",
    "frames": """CREATE TABLE frames (
        number INTEGER PRIMARY KEY, step INTEGER NOT NULL, epoch REAL NOT NULL, seconds REAL NOT NULL,
        measures TEXT NOT NULL, published INTEGER NOT NULL, embeddings BLOB, predictions BLOB) STRICT""",
    "layouts": """CREATE TABLE layouts (
        frame INTEGER NOT NULL, method TEXT NOT NULL, measures TEXT NOT NULL, xy BLOB NOT NULL,
        PRIMARY KEY (frame, method)) STRICT""",
    "points": """CREATE TABLE points (
        number INTEGER PRIMARY KEY, text TEXT NOT NULL, label INTEGER NOT NULL, held_out INTEGER NOT NULL) STRICT""",
    "facts": "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
}
FLOAT = np.dtype("<f4")


def open_writer(path: Path) -> sqlite3.Connection:
    """Open a run's database to write, and make it in one piece where it is not there yet.

    Raises:
        RunError: it is of another version.
        sqlite3.Error: it cannot be opened or written.
    """
    connection = sqlite3.connect(path, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if _format_of(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        for statement in TABLES.values():
            connection.execute(statement)
        connection.execute("INSERT INTO status VALUES (1, 'starting', 0, 0, 0.0, 0.0, NULL, '', 0, 0.0, 0)")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    _require_format(connection)
    return connection


def open_reader(path: Path) -> sqlite3.Connection | None:
    """Open a run's database to read; None where the worker has not made it yet.

    Raises:
        RunError: it is of another version.
        sqlite3.Error: it cannot be opened.
    """
    if not path.is_file():
        return None
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=SECONDS_TO_WAIT)
    try:
        if _format_of(connection) == 0:
            connection.close()
            return None
        _require_format(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def to_blob(array: np.ndarray) -> bytes:
    """Return numbers as they lie in the database."""
    return np.ascontiguousarray(array, dtype=FLOAT).tobytes()


def from_blob(blob: bytes, rows: int) -> np.ndarray:
    """Return (row, column) numbers from a blob.

    Raises:
        RunError: the blob does not hold this many rows.
    """
    if not rows or len(blob) % (rows * FLOAT.itemsize):
        raise RunError(f"the run's database is damaged: {len(blob)} bytes are not {rows} rows of numbers")
    return np.frombuffer(blob, dtype=FLOAT).reshape(rows, -1).astype(np.float32)


def _format_of(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _require_format(connection: sqlite3.Connection) -> None:
    if (found := _format_of(connection)) != FORMAT:
        raise RunError(f"the run's database has format={found}; this version of Vitrine reads format={FORMAT}")
