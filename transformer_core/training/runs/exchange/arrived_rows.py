"""The rows of a database from elsewhere: read only, checked, and written into a database of our own.

Not a byte of the foreign file is kept, so that no trigger, view or damaged page comes along. Read next: facts.py.
"""

import json
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import numpy as np

from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.exchange.facts import check_facts
from transformer_core.training.runs.store.database import FLOAT, FORMAT, TABLES, open_writer
from transformer_core.training.runs.store.folder import DATABASE
from transformer_core.training.runs.store.records import ENDED, Method, State
from transformer_core.training.spec import BOUNDS, RunSpec

LONGEST_VALUE = 16 << 20
LONGEST_TEXT = 10_000
SECONDS_TO_READ = 60.0
STEPS_BETWEEN_LOOKS = 100_000
MOST_STEPS = 10_000_000
MOST_MEASURES = 32
Row = tuple[Any, ...]


def take_rows(foreign: Path, folder: Path, spec: RunSpec) -> dict[str, Any]:
    """Copy what is sound of a foreign database into a new one in a folder, and return the run's facts.

    Raises:
        RunError: the foreign file is no database of a run, or a row cannot be one of this spec's run.
    """
    try:
        with closing(_opened(foreign)) as source, closing(open_writer(folder / DATABASE)) as target:
            _check_schema(source)
            return _Copy(source, target, spec).all()
    except RunError:
        raise
    except sqlite3.Error as error:
        raise RunError(f"the run's database cannot be read: {error!s:.200}") from None
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError, RecursionError) as error:
        raise RunError(f"the run's database holds what no run writes: {error!r:.200}") from None


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    until = time.monotonic() + SECONDS_TO_READ
    connection.set_progress_handler(lambda: time.monotonic() > until, STEPS_BETWEEN_LOOKS)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _check_schema(source: sqlite3.Connection) -> None:
    """Raise RunError unless there are exactly our tables, whole, and nothing besides."""
    found = {
        (kind, name): sql
        for kind, name, sql in source.execute("SELECT type, name, sql FROM sqlite_master")
        if not (kind == "index" and sql is None)
    }
    wanted = {("table", name): sql for name, sql in TABLES.items()}
    for kind, name in sorted(found.keys() ^ wanted.keys()):
        has = "has" if (kind, name) in found else "lacks"
        raise RunError(f"the run's database {has} the {kind!s:.20} {name!s:.100}; it is not one that Vitrine wrote")
    if changed := [name for (_, name), sql in found.items() if sql != TABLES[name]]:
        raise RunError(f"the run's database has another table {changed[0]}; it is not one that Vitrine wrote")
    if (version := source.execute("PRAGMA user_version").fetchone()[0]) != FORMAT:
        raise RunError(f"the run's database has format={version}; format={FORMAT} is taken in")
    if (answer := source.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise RunError(f"the run's database is damaged: {answer:.200}")


class _Copy:
    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection, spec: RunSpec) -> None:
        self._source, self._target, self._spec = source, target, spec
        self._n_points = self._n_classes = self._d_model = self._n_frames = 0

    def all(self) -> dict[str, Any]:
        self._target.execute("BEGIN IMMEDIATE")
        facts = self._facts()
        self._copy("points", self._points(len(facts.get("labels", ()))))
        self._n_classes, self._d_model = len(facts.get("labels", ())), facts.get("model", {}).get("d_model", 0)
        total_steps = self._status()
        self._copy("steps", self._steps(total_steps))
        self._copy("frames", self._frames(total_steps))
        self._copy("layouts", self._layouts())
        self._target.execute("COMMIT")
        return facts

    def _rows(self, table: str) -> Iterator[Row]:
        return iter(self._source.execute(f"SELECT * FROM {table}"))

    def _copy(self, table: str, rows: Iterator[Row]) -> None:
        width = len(self._target.execute(f"PRAGMA table_info({table})").fetchall())
        self._target.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)

    def _facts(self) -> dict[str, Any]:
        facts = {}
        for name, value in self._rows("facts"):
            facts[name] = json.loads(value)
        if facts:
            check_facts(facts, self._spec)
        self._copy("facts", iter([(name, json.dumps(value, ensure_ascii=False)) for name, value in facts.items()]))
        return facts

    def _status(self) -> int:
        rows = list(self._rows("status"))
        _require(len(rows) == 1, "status", rows)
        _, state, step, total, epoch, seconds, _, message, _, updated, _ = rows[0]
        _require(state in get_args(State) and 0 <= step <= total <= MOST_STEPS, "status", rows)
        _require(_finite(epoch, seconds, updated) and len(message) <= LONGEST_TEXT, "status", rows)
        self._target.execute("DELETE FROM status")
        values = (1, state if state in ENDED else "stopped", step, total, epoch, seconds, None, message, 0, updated, 0)
        self._copy("status", iter([values]))
        return total

    def _points(self, n_labels: int) -> Iterator[Row]:
        for number, text, label, held_out in self._rows("points"):
            fits = number == self._n_points < BOUNDS["points"][1] and len(text) <= LONGEST_TEXT
            _require(fits and 0 <= label < n_labels and held_out in (0, 1), "points", number)
            self._n_points += 1
            yield number, text, label, held_out

    def _steps(self, total_steps: int) -> Iterator[Row]:
        for row in self._rows("steps"):
            _require(1 <= row[0] <= total_steps and _finite(*row[1:]), "steps", row)
            yield row

    def _frames(self, total_steps: int) -> Iterator[Row]:
        widths = (self._d_model, self._n_classes)
        for number, step, epoch, seconds, measures, published, *blobs in self._rows("frames"):
            fits = number == self._n_frames < BOUNDS["frames"][1] and 0 <= step <= total_steps
            _require(fits and _finite(epoch, seconds) and published in (0, 1), "frames", number)
            for blob, width in zip(blobs, widths, strict=True):
                self._check_blob(blob, width if self._n_points else None, "frames", number)
            self._n_frames += 1
            yield number, step, epoch, seconds, _measures(measures), published, *blobs

    def _layouts(self) -> Iterator[Row]:
        for frame, method, measures, xy in self._rows("layouts"):
            _require(0 <= frame < self._n_frames and method in get_args(Method), "layouts", frame)
            self._check_blob(xy, 2, "layouts", frame)
            _require(bool(np.isfinite(np.frombuffer(xy, dtype=FLOAT)).all()), "layouts", frame)
            yield frame, method, _measures(measures), xy

    def _check_blob(self, blob: bytes | None, width: int | None, table: str, row: int) -> None:
        """Raise RunError unless a blob holds `width` numbers for each point; None where there are no points."""
        if width is None:
            _require(blob is None, table, row)
            return
        _require(isinstance(blob, bytes) and len(blob) == self._n_points * width * FLOAT.itemsize, table, row)


def _require(fits: bool, table: str, row: Any) -> None:
    if not fits:
        raise RunError(f"the run's database holds in {table} what no run writes: {row!r:.100}")


def _finite(*numbers: float) -> bool:
    return all(math.isfinite(number) for number in numbers)


def _measures(text: str) -> str:
    measures = json.loads(text)
    _require(isinstance(measures, dict) and len(measures) <= MOST_MEASURES, "measures", text)
    _require(all(isinstance(value, int | float) for value in measures.values()), "measures", text)
    _require(_finite(*measures.values()), "measures", text)
    return json.dumps({name[:100]: float(value) for name, value in measures.items()})
