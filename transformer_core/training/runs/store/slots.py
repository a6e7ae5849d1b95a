"""The queue: a limited number of runs compute at once, and the others wait as tickets, without a process.

A ticket is an empty file, numbered in order of the starts; it goes when a worker has taken its run and a slot. A slot
is a file lock of the process that computes. Both outlive a server, and a slot is free again when its worker dies.
"""

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from transformer_core.device import cores
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.folder import LAUNCH, LOCK, LOG, PAUSED, REQUEST, has_worker, hold, is_held
from transformer_core.training.runs.store.records import Status

TICKETS, SLOTS, TURN = ".queue", ".slots", "turn.lock"
MOST_QUEUED = 100  # a run that waits has no process
MOST_RUNS, MOST_PAUSES = "VITRINE_MOST_RUNS", "VITRINE_MOST_PAUSES"
PAUSES = 2
PATIENCE_WITH_LAUNCH = 0.2


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


def is_live(folder: Path) -> bool:
    """Tell whether a run computes, starts, waits or pauses."""
    return has_worker(folder) or (folder / PAUSED).exists() or folder.name in Queue(folder.parent).runs()


class Queue:
    """The queue of one folder of runs, as any process sees it.

    Args:
        root: folder of the runs.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._tickets, self._slots = root, root / TICKETS, root / SLOTS

    def runs(self) -> list[str]:
        """Return the runs that have a ticket, in order; those that a worker is being started for are among them."""
        return [_run_of(ticket) for ticket in sorted(self._tickets.glob("*-*"))]

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
            RunError: too many wait already, or the folder cannot be written.
        """
        with self.turn():
            require()
            waiting = self._waiting()
            if run in map(_run_of, waiting):
                return
            self._require_room(waiting)
            (self._root / run / REQUEST).unlink(missing_ok=True)
            (self._root / run / PAUSED).unlink(missing_ok=True)
            self._new_ticket(run)

    def require_room(self) -> None:
        """Raise RunError where too many runs wait for another to join."""
        if self.runs():
            with self.turn():
                self._require_room(self._waiting())

    def leave(self, run: str, reason: str = "") -> None:
        """Take a run out of the queue; the reason is left in its log, unless a worker writes there."""
        with self.turn():
            self._tear(run)
        folder = self._root / run
        if reason and not is_held(folder / LOCK):
            with suppress(OSError):
                (folder / LOG).write_text(f"{reason}\n", encoding="utf-8")

    def claim_next(self) -> tuple[str, FileLock] | None:
        """Return the next run for which a slot is free, with the lock to hold until its worker has taken it.

        The ticket stays until the worker has a slot, so that nothing is lost where this process or the worker dies.
        """
        with self.turn():
            for run in map(_run_of, self._waiting()[: self._count_free_slots()]):
                if not has_worker(self._root / run):
                    with suppress(RunError):
                        return run, hold(self._root / run / LAUNCH, patience=PATIENCE_WITH_LAUNCH)
        return None

    def take_slot(self, run: str) -> FileLock | None:
        """Return a slot, to be released when the run rests, or None: then the run waits, and keeps or gets a ticket.

        A run without a ticket, as after a pause, goes to the end of the queue, however many wait.
        """
        with self.turn():
            waiting = self._waiting()
            if run not in map(_run_of, waiting):
                waiting.append(self._new_ticket(run))
            place = [_run_of(ticket) for ticket in waiting].index(run)
            free = self._free_slots()
            for number, slot in enumerate(free):
                if number != place:
                    slot.release()
            if place >= len(free):
                return None
            waiting[place].unlink(missing_ok=True)
            return free[place]

    def take_pause(self) -> FileLock | None:
        """Return what lets a paused run keep its process, to be released afterwards; None where enough runs have it."""
        with self.turn():
            return next(self._free("pause", most_pauses()), None)

    def set_aside(self, run: str, status: Status) -> bool:
        """Give a run that waits or pauses without a worker another status; it loses its ticket.

        Returns:
            False where it has a worker, or one is being started.
        """
        folder = self._root / run
        with self.turn():
            if has_worker(folder):
                return False
            lock = hold(folder / LOCK)
            try:
                writer = RunWriter(folder)
                writer.set_status(dataclasses.replace(status, updated=time.time()))
                writer.close()
                (folder / PAUSED).unlink(missing_ok=True)
                if status.state == "paused":
                    (folder / PAUSED).touch()
                self._tear(run)
            finally:
                lock.release()
        return True

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the queue's own lock for the body, which must be short.

        Raises:
            RunError: other processes hold it for long, or the folder cannot be written.
        """
        with in_words("the queue of runs cannot be written"):
            self._tickets.mkdir(parents=True, exist_ok=True)
            self._slots.mkdir(exist_ok=True)
            lock = hold(self._tickets / TURN)
            try:
                yield
            finally:
                lock.release()

    def _require_room(self, waiting: list[Path]) -> None:
        if len(waiting) - self._count_free_slots() >= MOST_QUEUED:
            raise RunError(f"{len(waiting)} runs wait already, and no more may; stop one, or come back later")

    def _new_ticket(self, run: str) -> Path:
        last = max((int(ticket.name.partition("-")[0]) for ticket in self._tickets.glob("*-*")), default=0)
        ticket = self._tickets / f"{last + 1:020d}-{run}"
        ticket.touch()
        return ticket

    def _tear(self, run: str) -> None:
        for ticket in self._tickets.glob(f"*-{run}"):
            ticket.unlink(missing_ok=True)

    def _waiting(self) -> list[Path]:
        """Return the tickets of runs that are still there, in order; the others are deleted."""
        waiting = []
        for ticket in sorted(self._tickets.glob("*-*")):
            if (self._root / _run_of(ticket)).is_dir():
                waiting.append(ticket)
            else:
                ticket.unlink(missing_ok=True)
        return waiting

    def _count_free_slots(self) -> int:
        free = self._free_slots()
        for slot in free:
            slot.release()
        return len(free)

    def _free_slots(self) -> list[FileLock]:
        return list(self._free("", most_runs()))

    def _free(self, kind: str, most: int) -> Iterator[FileLock]:
        """Take the free locks of a kind, one each time the iterator is advanced."""
        for number in range(most):
            slot = FileLock(self._slots / f"{kind}{number}.lock", thread_local=False)
            try:
                slot.acquire(timeout=0)
            except Timeout:
                continue
            yield slot


def _run_of(ticket: Path) -> str:
    return ticket.name.partition("-")[2]
