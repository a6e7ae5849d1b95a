"""The queue: a limited number of runs compute at once, and the others wait in order, without a process.

One table beside the runs has what several processes decide together: who waits and in which order, who computes or
pauses with a process, who pauses without one, and what a run was asked. That a process has a run is told by the run's
lock alone, which the operating system releases when the process ends: what a killed worker had in the table counts for
nothing. So both outlive a server, and a slot is free again when its worker dies.

A file that is no such table, or only the beginning of one, is put aside under another name, and a new table is made of
what the runs' folders tell. It is written under another name and renamed, so that nobody sees half of it.
"""

import dataclasses
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from transformer_core.device import cores
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.store.database import SECONDS_TO_WAIT, RunWriter, state_of
from transformer_core.training.runs.store.folder import LAUNCH, LOCK, LOG, SPEC, created_at, has_worker, hold, is_held
from transformer_core.training.runs.store.records import REQUESTS, Presence, Request, Status

TABLE, FORMAT = "queue.sqlite", 1
DRAFT, MAKING, DAMAGED = ".queue.new", "queue.lock", "queue.damaged-{}.sqlite"
DAMAGES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
CREATE = """CREATE TABLE queue (
    run TEXT PRIMARY KEY, place INTEGER, slot TEXT, paused INTEGER NOT NULL DEFAULT 0, asked TEXT) STRICT"""
JOIN = """INSERT INTO queue (run, place) SELECT ?, COALESCE(MAX(place), 0) + 1 FROM queue WHERE TRUE
    ON CONFLICT DO UPDATE SET place = excluded.place"""
TICKETS, PAUSED = ".queue", "paused"  # what earlier versions had in place of the table
MOST_QUEUED = 100  # a run that waits has no process
MOST_RUNS, MOST_PAUSES = "VITRINE_MOST_RUNS", "VITRINE_MOST_PAUSES"
PAUSES = 2
PATIENCE_WITH_LAUNCH = 0.2
Slot = Literal["computes", "pauses"]


def most_runs() -> int:
    """Return how many runs may compute at once: the variable VITRINE_MOST_RUNS, else one for every two processors.

    Raises:
        RunError: the variable is not a whole number from 1 to 64.
    """
    return _whole_number(MOST_RUNS, max(1, cores() // 2), least=1)


def most_pauses() -> int:
    """Return how many paused runs may keep their process: the variable VITRINE_MOST_PAUSES, else 2.

    Raises:
        RunError: the variable is not a whole number from 0 to 64.
    """
    return _whole_number(MOST_PAUSES, PAUSES, least=0)


def _whole_number(variable: str, default: int, *, least: int) -> int:
    value = os.environ.get(variable)
    if not value:
        return default
    if not (value.isdecimal() and least <= int(value) <= 64):
        raise RunError(f"{variable}={value!r:.50} must be a whole number from {least} to 64")
    return int(value)


def damaged_queues(root: Path) -> list[str]:
    """Return the names of the tables of a folder of runs that were damaged and put aside."""
    return sorted(path.name for path in root.glob(DAMAGED.format("*")))


class Queue:
    """The queue of one folder of runs, as any process sees it.

    Args:
        root: folder of the runs.

    Raises:
        RunError: all methods raise it where the table cannot be read or written.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._path = root, root / TABLE

    def runs(self) -> list[str]:
        """Return the runs that wait, in order; those that a worker is being started for are among them."""
        return [run for (run,) in self._rows("SELECT run FROM queue WHERE place IS NOT NULL ORDER BY place")]

    def live(self, folders: Iterable[Path]) -> set[Path]:
        """Return those of some runs' folders whose run computes, starts, waits or pauses."""
        rows = self._rows("SELECT run FROM queue WHERE place IS NOT NULL OR paused")
        return {folder for folder in folders if (folder.name,) in rows or has_worker(folder)}

    def presence(self, run: str) -> Presence:
        """Return how far a run is from computing."""
        folder = self._root / run
        rows = self._rows("SELECT place, paused FROM queue WHERE run = ?", run)
        starting = is_held(folder / LAUNCH)
        place, paused = rows[0] if rows else (None, 0)
        return Presence(
            alive=is_held(folder / LOCK),
            starting=starting or place is not None,
            queue_place=0 if place is None or starting else self.place(run),
            paused=bool(paused),
        )

    def place(self, run: str) -> int:
        """Return a run's place among those that wait, from 1; 0 where it does not, or is being started."""
        runs = self.runs()
        if run not in runs or has_worker(self._root / run):
            return 0
        return 1 + sum(not has_worker(self._root / other) for other in runs[: runs.index(run)])

    def join(self, run: str, require: Callable[[], object] = bool) -> None:
        """Put a run at the end of the queue; one that is in it keeps its place.

        Args:
            run: its id.
            require: raises where the run may not wait; no other process changes the queue meanwhile.

        Raises:
            RunError: too many wait already.
        """
        with self._turn() as table:
            require()
            waiting = self._waiting(table)
            if run not in waiting:
                self._require_room(table, waiting)
                table.execute(JOIN, (run,))
                table.execute("UPDATE queue SET paused = 0, asked = NULL WHERE run = ?", (run,))

    def require_room(self) -> None:
        """Raise RunError where too many runs wait for another to join."""
        if self.runs():
            with self._turn() as table:
                self._require_room(table, self._waiting(table))

    def leave(self, run: str, reason: str = "") -> None:
        """Take a run out of the queue; the reason is left in its log, unless a worker writes there."""
        with self._turn() as table:
            table.execute("UPDATE queue SET place = NULL, paused = 0 WHERE run = ?", (run,))
        folder = self._root / run
        if reason and not is_held(folder / LOCK):
            with suppress(OSError):
                (folder / LOG).write_text(f"{reason}\n", encoding="utf-8")

    def claim_next(self) -> tuple[str, FileLock] | None:
        """Return the next run for which a slot is free, with the lock to hold until its worker has taken it.

        It waits until the worker has a slot, so that nothing is lost where this process or the worker dies.
        """
        with self._turn() as table:
            for run in self._waiting(table)[: self._count_free(table, "computes")]:
                if not has_worker(self._root / run):
                    with suppress(RunError):
                        return run, hold(self._root / run / LAUNCH, patience=PATIENCE_WITH_LAUNCH)
        return None

    def take_slot(self, run: str) -> bool:
        """Give a slot to a run that this process holds, until it frees it or ends; False where the run has to wait.

        One that did not wait, as after a pause, goes to the end of the queue, however many wait.
        """
        with self._turn() as table:
            table.execute("INSERT OR IGNORE INTO queue (run) VALUES (?)", (run,))
            table.execute("UPDATE queue SET slot = NULL, paused = 0 WHERE run = ?", (run,))
            waiting = self._waiting(table)
            if run not in waiting:
                table.execute(JOIN, (run,))
                waiting.append(run)
            if waiting.index(run) >= self._count_free(table, "computes"):
                return False
            table.execute("UPDATE queue SET place = NULL, slot = 'computes' WHERE run = ?", (run,))
            return True

    def take(self, run: str) -> bool:
        """Take a run out of the queue that a cluster has a place for; False where it waits no longer."""
        with self._turn() as table:
            taken = table.execute("UPDATE queue SET place = NULL WHERE run = ? AND place IS NOT NULL", (run,))
            return taken.rowcount == 1

    def take_pause(self, run: str) -> bool:
        """Free a run's slot; tell whether it may keep its process while it pauses, or enough runs do."""
        with self._turn() as table:
            table.execute("UPDATE queue SET slot = NULL WHERE run = ?", (run,))
            free = self._count_free(table, "pauses") > 0
            if free:
                table.execute("UPDATE queue SET slot = 'pauses' WHERE run = ?", (run,))
            return free

    def let_go(self, run: str) -> None:
        """Note that a run pauses from now on without a process."""
        with self._turn() as table:
            table.execute("UPDATE queue SET paused = 1 WHERE run = ?", (run,))

    def set_aside(self, run: str, status: Status) -> bool:
        """Give a run that waits or pauses without a worker another status; it waits no longer.

        Returns:
            False where it has a worker, or one is being started.
        """
        folder = self._root / run
        with self._turn() as table:
            if has_worker(folder):
                return False
            lock = hold(folder / LOCK)
            try:
                writer = RunWriter(folder)
                writer.set_status(dataclasses.replace(status, updated=time.time()))
                writer.close()
                paused = status.state == "paused"
                table.execute("UPDATE queue SET place = NULL, paused = ? WHERE run = ?", (paused, run))
            finally:
                lock.release()
        return True

    def ask(self, run: str, request: Request) -> None:
        """Leave a request for the worker of a run; a later one replaces it.

        Raises:
            RunError: the request is unknown.
        """
        if request not in REQUESTS:
            raise RunError(f"request={request!r} is unknown; it must be one of {', '.join(REQUESTS)}")
        with self._turn() as table:
            table.execute(
                "INSERT INTO queue (run, asked) VALUES (?, ?) ON CONFLICT DO UPDATE SET asked = excluded.asked",
                (run, request),
            )

    def heard(self, run: str) -> Request | None:
        """Take the request that was left for a run's worker; None where there is none."""
        rows = self._rows("SELECT asked FROM queue WHERE run = ? AND asked IS NOT NULL", run)
        if not rows:
            return None
        with suppress(RunError), self._turn() as table:  # where the disk is full it is heard once more
            table.execute("UPDATE queue SET asked = NULL WHERE run = ? AND asked = ?", (run, rows[0][0]))
        return rows[0][0]

    def _require_room(self, table: sqlite3.Connection, waiting: list[str]) -> None:
        if len(waiting) - self._count_free(table, "computes") >= MOST_QUEUED:
            raise RunError(f"{len(waiting)} runs wait already, and no more may; stop one, or come back later")

    def _waiting(self, table: sqlite3.Connection) -> list[str]:
        """Return the runs that wait, in order; the rows of runs that are gone are deleted."""
        rows = table.execute("SELECT run, place FROM queue ORDER BY place").fetchall()
        gone = [run for run, _ in rows if not (self._root / run).is_dir()]
        table.executemany("DELETE FROM queue WHERE run = ?", [(run,) for run in gone])
        return [run for run, place in rows if place is not None and run not in gone]

    def _count_free(self, table: sqlite3.Connection, slot: Slot) -> int:
        """Return how many slots of a kind no living worker has."""
        rows = table.execute("SELECT run FROM queue WHERE slot = ?", (slot,))
        taken = sum(is_held(self._root / run / LOCK) for (run,) in rows)
        return max(0, (most_runs() if slot == "computes" else most_pauses()) - taken)

    @contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        """Change the table in one transaction; no other process changes it during the body, which must be short.

        Raises:
            RunError: other processes hold it for long, or it cannot be written.
        """
        with in_words("the queue of runs cannot be written"), closing(self._opened()) as table:
            table.execute("BEGIN IMMEDIATE")
            try:
                yield table
                table.execute("COMMIT")
            finally:
                if table.in_transaction:
                    table.execute("ROLLBACK")

    def _rows(self, query: str, *values: Any) -> list[tuple]:
        with in_words("the queue of runs cannot be read"):
            if not self._path.is_file() and not ((self._root / TICKETS).is_dir() or damaged_queues(self._root)):
                return []
            with closing(self._opened()) as table:
                return table.execute(query, values).fetchall()

    def _opened(self) -> sqlite3.Connection:
        """Open the table; where there is none, or a damaged one, make it."""
        table = self._sound_table()
        if table is None:
            turn = hold(self._root / MAKING)
            try:
                table = self._sound_table()  # another process was quicker
                if table is None:
                    self._make()
                    table = self._sound_table()
            finally:
                turn.release()
        if table is None:
            raise RunError(f"{TABLE} was made, and is gone or damaged again")
        return table

    def _sound_table(self) -> sqlite3.Connection | None:
        """Open the table; None where there is none, or it is damaged.

        Its journal keeps its place on the disk, so that a run can leave the queue of a full disk.
        """
        if not self._path.exists():
            return None
        address = f"{self._path.absolute().as_uri()}?mode=rw"  # it may have been put aside meanwhile: make no other
        table = sqlite3.connect(address, uri=True, timeout=SECONDS_TO_WAIT, isolation_level=None)
        try:
            table.execute("PRAGMA journal_mode = PERSIST")
            found = table.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, FORMAT):
                raise RunError(f"the queue of runs has format={found}; this version of Vitrine reads format={FORMAT}")
            if found and table.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return table
        except sqlite3.DatabaseError as error:
            damaged = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in DAMAGES
            if not damaged and self._path.exists():  # else it was put aside meanwhile
                table.close()
                raise
        except BaseException:
            table.close()
            raise
        table.close()
        return None

    def _make(self) -> None:
        """Make the table; a damaged one is put aside before, with its journal, which is of no other table."""
        aside = next(path for number in count(1) if not (path := self._root / DAMAGED.format(number)).exists())
        draft, journal = self._root / DRAFT, Path(f"{self._path}-journal")
        for left in (draft, Path(f"{draft}-journal")):
            left.unlink(missing_ok=True)
        if self._path.exists():
            self._path.rename(aside)
        with suppress(FileNotFoundError):
            journal.rename(f"{aside}-journal")
        with closing(sqlite3.connect(draft, isolation_level=None)) as table:
            table.execute("BEGIN")
            table.execute(CREATE)
            table.execute(f"PRAGMA user_version = {FORMAT}")
            self._take_over(table)
            if damaged_queues(self._root):
                self._take_from_folders(table)
            table.execute("COMMIT")
        draft.rename(self._path)

    def _take_from_folders(self, table: sqlite3.Connection) -> None:
        """Note what the runs' folders tell: which compute or pause, and that those never started wait, oldest first.

        A run that had been started and waited to go on is not told from one whose worker died: it can be resumed.
        """
        for folder in sorted((path.parent for path in self._root.glob(f"*/{SPEC}")), key=created_at):
            state, run = state_of(folder), folder.name
            if is_held(folder / LOCK):
                slot: Slot = "pauses" if state == "paused" else "computes"
                table.execute("INSERT OR REPLACE INTO queue (run, slot) VALUES (?, ?)", (run, slot))
            elif state == "paused":
                table.execute("INSERT OR REPLACE INTO queue (run, paused) VALUES (?, 1)", (run,))
            elif state is None and not _has_words(folder / LOG):
                table.execute(JOIN, (run,))

    def _take_over(self, table: sqlite3.Connection) -> None:
        """Take over what an earlier version noted in files: who waits, in order, and who pauses without a process."""
        if (self._root / TICKETS).is_dir():
            tickets, flags = sorted((self._root / TICKETS).glob("*-*")), list(self._root.glob(f"*/{PAUSED}"))
            table.executemany(JOIN, [(ticket.name.partition("-")[2],) for ticket in tickets])
            paused = "INSERT INTO queue (run, paused) VALUES (?, 1) ON CONFLICT DO UPDATE SET paused = 1"
            table.executemany(paused, [(flag.parent.name,) for flag in flags])


def _has_words(log: Path) -> bool:
    """Tell whether it was noted why a run could not be started."""
    with suppress(OSError):
        return bool(log.read_text(encoding="utf-8", errors="replace").strip())
    return False
