"""The database of a run: one SQLite file in WAL mode, which the worker writes while other processes read it.

Embeddings, predictions and layouts are little-endian float32, row after row.
"""

import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from transformer_core.training.histograms import BINS, QUANTITIES, Histograms
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.store.folder import DATABASE, LOCK, is_held
from transformer_core.training.runs.store.records import Frame, Layout, State, Status

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
HISTOGRAMS = """CREATE TABLE IF NOT EXISTS histograms (
    frame INTEGER PRIMARY KEY, groups TEXT NOT NULL, counts BLOB NOT NULL, rms BLOB NOT NULL) STRICT"""
FLOAT, COUNT = np.dtype("<f4"), np.dtype("<u4")
StepRow = tuple[int, float, float, float, float]


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def open_writer(path: Path) -> sqlite3.Connection:
    """Open a run's database to write; where there is none, create it in one transaction.

    Raises:
        RunError: it was written by another version of Vitrine.
        sqlite3.Error: it cannot be opened or written.
    """
    connection = sqlite3.connect(path, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False)
    with _closed_on_error(connection):
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
        connection.execute(HISTOGRAMS)  # which runs of earlier versions have not
    return connection


def open_reader(path: Path) -> sqlite3.Connection | None:
    """Open a run's database to read; None where the worker has not created it yet.

    A reader needs a file of its own beside the database; where a full disk has no room for it, and no worker writes,
    the database is read as it lies there.

    Raises:
        RunError: it was written by another version of Vitrine.
        sqlite3.Error: it cannot be opened.
    """
    if not path.is_file():
        return None
    connection = _connected(path, "mode=ro")
    try:
        with _closed_on_error(connection):
            _format_of(connection)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL) or is_held(
            path.parent / LOCK
        ):
            raise
        connection = _connected(path, "mode=ro&immutable=1")
    with _closed_on_error(connection):
        if _format_of(connection) == 0:
            connection.close()
            return None
        _require_format(connection)
    return connection


def _connected(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, timeout=SECONDS_TO_WAIT)


def worker_of(folder: Path) -> int | None:
    """Return the process id of a run's worker, or None.

    Raises:
        RunError: the database cannot be read.
    """
    with in_words("the run's database cannot be read"):
        connection = open_reader(folder / DATABASE) if is_held(folder / LOCK) else None
        if connection is None:
            return None
        with closing(connection):
            return connection.execute("SELECT pid FROM status").fetchone()[0] or None


def state_of(folder: Path) -> str | None:
    """Return the last state that a run's folder holds; None where it was never started, "" where it cannot be read."""
    try:
        connection = open_reader(folder / DATABASE)
        if connection is None:
            return None
        with closing(connection):
            return connection.execute("SELECT state FROM status").fetchone()[0]
    except (sqlite3.Error, RunError, TypeError):
        return ""


def read_histograms(groups: str, counts: bytes, rms: bytes) -> Histograms:
    """Return histograms as a row of the database holds them.

    Raises:
        RunError: the row is damaged.
    """
    try:
        names = tuple(map(str, json.loads(groups)))
        shape = (len(QUANTITIES), len(names))
        return Histograms(
            names,
            np.frombuffer(counts, COUNT).reshape(*shape, BINS).astype(np.uint32),
            np.frombuffer(rms, FLOAT).reshape(shape).astype(np.float32),
        )
    except (TypeError, ValueError, RecursionError):
        raise RunError(f"the run's database is damaged: {groups!r:.60} are no groups of histograms") from None


def to_blob(array: np.ndarray) -> bytes:
    """Return numbers in the database's format."""
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


def finite(measures: Mapping[str, float]) -> dict[str, float]:
    """Return the measures that are finite."""
    return {name: float(value) for name, value in measures.items() if math.isfinite(value)}


class RunWriter:
    """Write a run's database in small transactions, from any thread; the caller holds the run's lock.

    Args:
        folder: the run's.

    Raises:
        RunError: the database cannot be created or written; all methods raise it, too.
    """

    def __init__(self, folder: Path) -> None:
        with in_words("the run's database cannot be opened"):
            self._connection = open_writer(folder / DATABASE)
        self._turn = threading.Lock()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with in_words("the run cannot be written"), self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def set_state(self, state: State, *, message: str = "") -> None:
        """Set the state that readers see."""
        values = (state, message, time.time(), os.getpid())
        with self._writing() as connection:
            connection.execute("UPDATE status SET state=?, message=?, updated=?, pid=?", values)

    def set_status(self, status: Status) -> None:
        """Set the whole status of a run that has no worker, as of an imported one."""
        values = (status.state, status.step, status.total_steps, status.epoch, status.seconds, status.message)
        with self._writing() as connection:
            connection.execute(
                "UPDATE status SET state=?, step=?, total_steps=?, epoch=?, seconds=?, message=?, updated=?,"
                " seconds_left=NULL, pid=0",
                (*values, status.updated),
            )

    def set_progress(self, step: int, total_steps: int, epoch: float, seconds: float) -> None:
        """Set the progress that readers see where no step is written with it."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE status SET step=?, total_steps=?, epoch=?, seconds=?, updated=?",
                (step, total_steps, epoch, seconds, time.time()),
            )

    def add_steps(self, rows: Sequence[StepRow], epoch: float, seconds_left: float | None) -> None:
        """Write steps; a step that was written before is replaced.

        Args:
            rows: step, loss, learning rate, norm of the gradient, seconds of training so far.
            epoch: passes over the data so far.
            seconds_left: estimated.
        """
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute(
                "UPDATE status SET step=?, seconds=?, epoch=?, seconds_left=?, updated=?",
                (rows[-1][0], rows[-1][4], epoch, seconds_left, time.time()),
            )

    def add_frame(
        self,
        frame: Frame,
        embeddings: np.ndarray | None,
        predictions: np.ndarray | None,
        *,
        published: bool,
        histograms: Histograms | None = None,
    ) -> None:
        """Write a frame; readers see it when it is published.

        Shapes:
            embeddings: (point, d_model); predictions: (point, class)
        """
        blobs = [None if array is None else to_blob(array) for array in (embeddings, predictions)]
        measures = json.dumps(finite(frame.measures))
        row = (frame.number, frame.step, frame.epoch, frame.seconds, measures, int(published), *blobs)
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO frames VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            if histograms is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO histograms VALUES (?, ?, ?, ?)",
                    (
                        frame.number,
                        json.dumps(histograms.groups),
                        histograms.counts.astype(COUNT).tobytes(),
                        to_blob(histograms.rms),
                    ),
                )

    def publish(self, frame: int, layouts: Iterable[Layout]) -> None:
        """Write a frame's layouts and let readers see it."""
        rows = [
            (frame, one.method, json.dumps(finite(one.measures)), to_blob(np.nan_to_num(one.xy))) for one in layouts
        ]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO layouts VALUES (?, ?, ?, ?)", rows)
            connection.execute("UPDATE frames SET published = 1 WHERE number = ?", (frame,))

    def set_points(self, texts: Sequence[str], labels: Sequence[int], held_out: Sequence[bool]) -> None:
        """Write the points whose embeddings are recorded."""
        rows = [
            (number, text, int(label), int(out))
            for number, (text, label, out) in enumerate(zip(texts, labels, held_out, strict=True))
        ]
        with self._writing() as connection:
            connection.execute("DELETE FROM points")
            connection.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)

    def set_facts(self, facts: Mapping[str, Any]) -> None:
        """Write facts, each a JSON value, over those of the same names."""
        rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in facts.items()]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def forget_progress(self) -> None:
        """Delete steps, frames and layouts, so that the run starts from its first step."""
        with self._writing() as connection:
            for table in ("steps", "frames", "layouts", "histograms"):
                connection.execute(f"DELETE FROM {table}")
            connection.execute("UPDATE status SET step=0, epoch=0.0, seconds=0.0, seconds_left=NULL")

    def unpublished(self) -> list[int]:
        """Return the numbers of the frames that wait for their layouts, in order."""
        return [number for (number,) in self._read("SELECT number FROM frames WHERE NOT published ORDER BY number")]

    def recorded_frames(self) -> list[int]:
        """Return the numbers of all frames, published or not."""
        return [number for (number,) in self._read("SELECT number FROM frames ORDER BY number")]

    def frames(self) -> list[Frame]:
        """Return all frames, published or not."""
        rows = self._read("SELECT number, step, epoch, seconds, measures FROM frames ORDER BY number")
        return [
            Frame(number, step, epoch, seconds, json.loads(measures)) for number, step, epoch, seconds, measures in rows
        ]

    def seconds_at(self, step: int) -> float:
        """Return the seconds of training up to a step."""
        rows = self._read("SELECT seconds FROM steps WHERE step = ?", step)
        return rows[0][0] if rows else 0.0

    def _read(self, query: str, *values: Any) -> list[tuple]:
        with in_words("the run cannot be read"), self._turn:
            return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Close the database."""
        with self._turn:
            self._connection.close()
