"""The queue: a limited number of runs compute at once, and the others wait in order of their start.

A ticket is a file named after the time of the start; it counts while its run has a worker. A slot is a file lock. Both
outlive a server, and are free again when a worker dies.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.store.folder import has_worker, hold

TICKETS, SLOTS, TURN = ".queue", ".slots", "turn.lock"
MOST_QUEUED = 16
MOST_RUNS = "VITRINE_MOST_RUNS"


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_runs() -> int:
    """Return how many runs may compute at once: the variable VITRINE_MOST_RUNS, else one for every two processors.

    Raises:
        RunError: the variable is not a whole number from 1 to 64.
    """
    value = os.environ.get(MOST_RUNS)
    if not value:
        return max(1, cores() // 2)
    if not (value.isdecimal() and 1 <= int(value) <= 64):
        raise RunError(f"{MOST_RUNS}={value!r:.50} must be a whole number from 1 to 64")
    return int(value)


class Queue:
    """The queue of one folder of runs, as any process sees it.

    Args:
        root: folder of the runs.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._tickets, self._slots = root, root / TICKETS, root / SLOTS

    def join(self, run: str) -> None:
        """Put a run at the end of the queue; one that is in it keeps its place.

        Raises:
            RunError: too many wait already, or the folder cannot be written.
        """
        with self.turn():
            waiting = self._waiting()
            if run in map(_run_of, waiting):
                return
            if len(waiting) - self._count_free_slots() >= MOST_QUEUED:
                raise RunError(f"{len(waiting)} runs wait already, and no more may; stop one, or come back later")
            self._new_ticket(run)

    def leave(self, run: str) -> None:
        """Take a run out of the queue."""
        with self.turn():
            for ticket in self._tickets.glob(f"*-{run}"):
                ticket.unlink(missing_ok=True)

    def take_slot(self, run: str) -> FileLock | int:
        """Return a slot, to be released when the run ends, or the run's place in the queue, from 1.

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
                return place - len(free) + 1
            waiting[place].unlink(missing_ok=True)
            return free[place]

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

    def _new_ticket(self, run: str) -> Path:
        ticket = self._tickets / f"{time.time_ns():020d}-{run}"
        ticket.touch()
        return ticket

    def _waiting(self) -> list[Path]:
        """Return the tickets that count, oldest first; the others are deleted."""
        counting = []
        for ticket in sorted(self._tickets.glob("*-*")):
            if has_worker(self._root / _run_of(ticket)):
                counting.append(ticket)
            else:
                ticket.unlink(missing_ok=True)
        return counting

    def _count_free_slots(self) -> int:
        free = self._free_slots()
        for slot in free:
            slot.release()
        return len(free)

    def _free_slots(self) -> list[FileLock]:
        free = []
        for number in range(most_runs()):
            slot = FileLock(self._slots / f"{number}.lock", thread_local=False)
            try:
                slot.acquire(timeout=0)
            except Timeout:
                continue
            free.append(slot)
        return free


def _run_of(ticket: Path) -> str:
    return ticket.name.partition("-")[2]
