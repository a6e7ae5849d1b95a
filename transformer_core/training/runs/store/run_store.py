"""RunStore: reads one run's folder, while its worker writes it or later.

Reading takes no lock that the worker waits for.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from transformer_core.bundle import MODELS, Answered, Bundle, load_weights, make_config
from transformer_core.device import best_device
from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.training.histograms import Histograms
from transformer_core.training.runs.errors import RunError, in_words, without_paths
from transformer_core.training.runs.store.database import from_blob, open_reader, read_histograms
from transformer_core.training.runs.store.folder import (
    DATABASE,
    LOG,
    SPEC,
    TOKENIZER,
    left_reason,
    owner_of,
    weights_file,
)
from transformer_core.training.runs.store.records import (
    ENDED,
    Curves,
    Frame,
    Layout,
    Presence,
    Status,
    StoredPoints,
)
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.make import held_out_of

LAST_LINES, LAST_BYTES = 4, 2_000
MOST_HELD_OUT, LONGEST_HELD_OUT = 1_000, 2_000  # texts to measure on, and characters of each
NEVER_STARTED = "the run was never started"
DIED = "the worker ended without a word: it was killed, or the machine ran out of memory"


class RunStore:
    """Read one run's folder; any number of processes may, while at most one worker writes it.

    Args:
        folder: the run's; its name is the run's id.
        presence: tells how far the run in a folder is from computing, as a Runner does; by default nothing computes it.

    Raises:
        RunError: spec.json cannot be read; all methods raise it where the folder cannot be read.
    """

    def __init__(self, folder: Path, presence: Callable[[Path], Presence] = lambda _: Presence()) -> None:
        self.folder, self._presence = Path(folder), presence
        self.id = self.folder.name
        try:
            with in_words(f"run {self.id} cannot be read"):
                self.spec = RunSpec.from_json((self.folder / SPEC).read_text(encoding="utf-8"))
        except RunError:
            raise
        except ValueError as error:
            raise RunError(f"run {self.id} cannot be read: {SPEC}: {error!s:.300}") from None

    @cached_property
    def owner(self) -> str:
        """Who made the run, "" where nobody is told apart."""
        return owner_of(self.folder)

    def status(self) -> Status:
        """Return the state of the run; while it waits and has no worker, the queue tells it and not its folder."""
        seen = self._presence(self.folder)
        rows = self._rows(
            "SELECT state, step, total_steps, epoch, seconds, seconds_left, message, 0,"
            " (SELECT COUNT(*) FROM frames WHERE published), updated FROM status"
        )
        found = Status(*rows[0]) if rows else Status("starting")
        if not seen.alive and found.state not in ENDED:
            seen = self._presence(self.folder)  # a worker may have taken it meanwhile
        found = replace(found, alive=seen.alive)
        if seen.starting and (not seen.alive or found.state in ENDED):
            state = "queued" if seen.queue_place else "starting"
            waits = {"queue_place": seen.queue_place, "shortage": seen.shortage}
            return replace(found, state=state, message="", seconds_left=None, **waits)
        if found.state in ENDED or (found.state == "paused" and seen.paused):
            return replace(found, seconds_left=None)
        if seen.alive:
            return found
        if rows and (reason := left_reason(self.folder)):
            return replace(found, state="failed", message=reason, seconds_left=None)
        message = f"{DIED if rows else NEVER_STARTED}{self._last_words()}"
        return replace(found, state="interrupted", message=message, seconds_left=None)

    def curves(self, after: int = 0) -> Curves:
        """Return the steps that come after a step."""
        rows = self._rows(
            "SELECT step, loss, learning_rate, gradient_norm, seconds FROM steps WHERE step > ? ORDER BY step", after
        )
        columns = zip(*rows, strict=True) if rows else [()] * 5
        step, *rest = columns
        return Curves(np.array(step, dtype=np.int64), *(np.array(column, dtype=np.float64) for column in rest))

    def frames(self, after: int = -1) -> list[Frame]:
        """Return the published frames whose number is greater than `after`."""
        rows = self._rows(
            "SELECT number, step, epoch, seconds, measures FROM frames WHERE published AND number > ? ORDER BY number",
            after,
        )
        return [
            Frame(number, step, epoch, seconds, self._measures(measures))
            for number, step, epoch, seconds, measures in rows
        ]

    def layouts(self, after: int = -1) -> list[Layout]:
        """Return the layouts of the frames whose number is greater than `after`."""
        rows = self._rows(
            "SELECT frame, method, xy, measures FROM layouts WHERE frame > ? ORDER BY frame, method DESC", after
        )
        n_points = self._n_points if rows else 0
        return [
            Layout(frame, method, from_blob(xy, n_points), self._measures(measures))
            for frame, method, xy, measures in rows
        ]

    def histograms(self, after: int = -1) -> dict[int, Histograms]:
        """Return the histograms of the published frames whose number is greater than `after`, by that number.

        Runs of earlier versions have none.
        """
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'histograms'"):
            return {}
        rows = self._rows(
            "SELECT histograms.* FROM histograms JOIN frames ON number = frame WHERE published AND frame > ?",
            after,
        )
        return {frame: read_histograms(*values) for frame, *values in rows}

    def points(self) -> StoredPoints | None:
        """Return the points whose embeddings are recorded, or None where there are none."""
        rows = self._rows("SELECT text, label, held_out FROM points ORDER BY number")
        if not rows:
            return None
        texts, labels, held_out = zip(*rows, strict=True)
        return StoredPoints(list(texts), np.array(labels, dtype=np.int64), np.array(held_out, dtype=bool))

    def embeddings(self, frame: int) -> np.ndarray:
        """Return the points' sentence vectors at a frame, (point, d_model) float32."""
        return self._numbers("embeddings", frame)

    def predictions(self, frame: int) -> np.ndarray:
        """Return the points' class probabilities at a frame, (point, class) float32."""
        return self._numbers("predictions", frame)

    def facts(self) -> dict[str, Any]:
        """Return what the worker wrote at the start: kind, labels, baselines, device, versions and so on."""
        return {name: self._value(value) for name, value in self._rows("SELECT name, value FROM facts")}

    def require_readable(self) -> None:
        """Read the status, the facts and all measures, which lists of runs rely on.

        Raises:
            RunError: something of it is damaged.
        """
        self.status()
        self.facts()
        for (measures,) in self._rows("SELECT measures FROM frames UNION ALL SELECT measures FROM layouts"):
            self._measures(measures)

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer of the run's data.

        Raises:
            RunError: the worker has not written it yet, or it cannot be read.
        """
        try:
            with in_words(f"the tokenizer of run {self.id} cannot be read"):
                return _tokenizer_of(self.folder)
        except TokenizerError as error:
            raise RunError(f"the tokenizer of run {self.id} cannot be read: {error!s:.300}") from None

    def weights_path(self, frame: int) -> Path | None:
        """Return the file of a frame's weights, or None where they were not kept."""
        path = weights_file(self.folder, frame)
        return path if path.is_file() else None

    def model(self, frame: int | None = None) -> Bundle:
        """Return the model of a frame, by default of the last, in evaluation mode.

        Raises:
            RunError: there is no such frame, or its weights cannot be read.
        """
        if frame is None:
            frames = self.frames()
            if not frames:
                raise RunError(f"run {self.id} has no frame yet")
            frame = frames[-1].number
        path, name, facts = weights_file(self.folder, frame), f"frame {frame} of run {self.id}", self.facts()
        if not path.is_file():
            raise RunError(f"the weights of {name} were not kept")
        try:
            with in_words(f"{name} cannot be read"):
                model = load_weights(path, MODELS[facts["kind"]], make_config(facts["kind"], facts["model"]))
                tokenizer = _tokenizer_of(self.folder)
        except RunError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{name} cannot be read: {error!s:.300}") from None
        model = model.to(best_device()).eval().requires_grad_(False)
        file = self.spec.data.file  # a zip need not bring it
        there = file is None or (self.folder / file).is_file()
        read_held_out = partial(_held_out_of, self.folder) if there else None
        return Bundle(
            f"{self.id}-{frame:03d}", model, tokenizer, tuple(facts.get("labels", ())), read_held_out=read_held_out
        )

    def _measures(self, text: str) -> dict[str, float]:
        values = self._value(text)
        if not isinstance(values, dict) or not all(type(value) in (int, float) for value in values.values()):
            raise RunError(f"run {self.id} cannot be read: {text!r:.60} must be measures, each a number by its name")
        return values

    def _value(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise RunError(f"run {self.id} cannot be read: its database is damaged: {text!r:.60} is not JSON") from None

    @cached_property
    def _n_points(self) -> int:
        return self._rows("SELECT COUNT(*) FROM points")[0][0]

    def _numbers(self, column: str, frame: int) -> np.ndarray:
        rows = self._rows(f"SELECT {column} FROM frames WHERE number = ?", frame)
        if not rows or rows[0][0] is None:
            raise RunError(f"run {self.id} has no {column} of frame {frame}")
        return from_blob(rows[0][0], self._n_points)

    def _rows(self, query: str, *values: Any) -> list[tuple]:
        with in_words(f"run {self.id} cannot be read"):
            connection = open_reader(self.folder / DATABASE)
            if connection is None:
                return []
            with closing(connection):
                return connection.execute(query, values).fetchall()

    def _last_words(self) -> str:
        try:
            with (self.folder / LOG).open("rb") as log:
                log.seek(max(log.seek(0, 2) - LAST_BYTES, 0))
                lines = log.read().decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
        except OSError:
            return ""
        return f". Its last lines: {without_paths(' / '.join(lines))[:400]}" if lines else ""


def _tokenizer_of(folder: Path) -> Tokenizer:
    """Return a run's tokenizer; it is read once for all its frames.

    Raises:
        OSError, TokenizerError: it cannot be read.
    """
    path = folder / TOKENIZER
    return _tokenizer(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _held_out_of(folder: Path) -> Sequence[Answered]:
    """Return texts that a run never learned from; they are read once for all its frames.

    Raises:
        RunError, ValueError: they cannot be read.
    """
    with in_words("what the run held out cannot be read"):
        found = held_out_of(RunStore(folder).spec, folder)
    return [
        (text[:LONGEST_HELD_OUT], answer[:LONGEST_HELD_OUT] if isinstance(answer, str) else answer)
        for text, answer in found[:MOST_HELD_OUT]
    ]


@lru_cache(maxsize=16)
def _tokenizer(path: Path, _written: int) -> Tokenizer:
    return Tokenizer.load(path)
