"""RunWriter: the one hand that writes a run's database, in small transactions.

Any thread of the worker may call it; they take turns. Read next: store.py.
"""

import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from transformer_core.training.runs.errors import in_words
from transformer_core.training.runs.folder import DATABASE
from transformer_core.training.runs.records import Frame, Layout, State
from transformer_core.training.runs.schema import open_writer, to_blob

StepRow = tuple[int, float, float, float, float]


def finite(measures: Mapping[str, float]) -> dict[str, float]:
    """Return the measures that are numbers; the others tell nothing."""
    return {name: float(value) for name, value in measures.items() if math.isfinite(value)}


class RunWriter:
    """Write a run's database; whoever makes one holds the run's lock.

    Args:
        folder: the run's.

    Raises:
        RunError: the database cannot be made or written; so do all methods.
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

    def set_state(self, state: State, *, message: str = "", queue_place: int = 0) -> None:
        """Say what the run is doing."""
        values = (state, message, queue_place, time.time(), os.getpid())
        with self._writing() as connection:
            connection.execute("UPDATE status SET state=?, message=?, queue_place=?, updated=?, pid=?", values)

    def set_progress(self, step: int, total_steps: int, epoch: float, seconds: float) -> None:
        """Say how far the run is where no step tells it."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE status SET step=?, total_steps=?, epoch=?, seconds=?, updated=?",
                (step, total_steps, epoch, seconds, time.time()),
            )

    def add_steps(self, rows: Sequence[StepRow], epoch: float, seconds_left: float | None) -> None:
        """Write steps; what was written before of the same step is replaced, with equal values in an equal run.

        Args:
            rows: step, loss, learning rate, norm of the gradient, seconds of training so far.
            epoch: passes over the data so far.
            seconds_left: a guess.
        """
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute(
                "UPDATE status SET step=?, seconds=?, epoch=?, seconds_left=?, updated=?",
                (rows[-1][0], rows[-1][4], epoch, seconds_left, time.time()),
            )

    def add_frame(
        self, frame: Frame, embeddings: np.ndarray | None, predictions: np.ndarray | None, *, published: bool
    ) -> None:
        """Write a frame; readers see it once it is published.

        Shapes:
            embeddings: (point, d_model); predictions: (point, class)
        """
        blobs = [None if array is None else to_blob(array) for array in (embeddings, predictions)]
        measures = json.dumps(finite(frame.measures))
        row = (frame.number, frame.step, frame.epoch, frame.seconds, measures, int(published), *blobs)
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO frames VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def publish(self, frame: int, layouts: Iterable[Layout]) -> None:
        """Write a frame's layouts and let readers see it."""
        rows = [
            (frame, one.method, json.dumps(finite(one.measures)), to_blob(np.nan_to_num(one.xy))) for one in layouts
        ]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO layouts VALUES (?, ?, ?, ?)", rows)
            connection.execute("UPDATE frames SET published = 1 WHERE number = ?", (frame,))

    def set_points(self, texts: Sequence[str], labels: Sequence[int], held_out: Sequence[bool]) -> None:
        """Write the points that are followed."""
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
        """Delete steps, frames and layouts: the run begins anew."""
        with self._writing() as connection:
            for table in ("steps", "frames", "layouts"):
                connection.execute(f"DELETE FROM {table}")
            connection.execute("UPDATE status SET step=0, epoch=0.0, seconds=0.0, seconds_left=NULL")

    def unpublished(self) -> list[int]:
        """Return the numbers of the frames that wait for their layouts, in order."""
        return [number for (number,) in self._read("SELECT number FROM frames WHERE NOT published ORDER BY number")]

    def recorded_frames(self) -> list[int]:
        """Return the numbers of all frames, published or not."""
        return [number for (number,) in self._read("SELECT number FROM frames ORDER BY number")]

    def last_frame(self) -> Frame | None:
        """Return the last frame, published or not."""
        rows = self._read("SELECT number, step, epoch, seconds, measures FROM frames ORDER BY number DESC LIMIT 1")
        frames = [
            Frame(number, step, epoch, seconds, json.loads(measures)) for number, step, epoch, seconds, measures in rows
        ]
        return frames[0] if frames else None

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
