"""Heavy work: what takes longer than a moment is computed by a few processes of low priority, never by a page.

Where a Ray cluster computes runs it computes this, too: relays (heavy_relay) stand in the place of the processes.

Who waits looks in again and again. What nobody has looked for any more, or its last waiter has cancelled, is ended: its
process is killed, for most libraries can be interrupted in no other way, and another starts for what comes next. So is
what takes longer than it may. What consists of parts goes back into the queue between two of them.
"""

import pickle
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pages.serving.limits import limits
from pages.serving.turns import Turns
from transformer_core.heavy_process import Message
from transformer_core.training.runs.runner import chosen
from transformer_core.warm_process import ProcessDiedError, WarmProcess

COMMAND = (sys.executable, "-P", "-c", "from transformer_core.heavy_process import serve; serve()")
ON_CLUSTER = (sys.executable, "-P", "-m", "transformer_core.heavy_relay")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SECONDS_WAITED_FOR = 6.0  # since somebody has looked; a page looks more often than once a second
SECONDS_LEFT = 2.0  # what runs goes on so long without anybody: to start another process takes as long
SECONDS_BETWEEN_SWEEPS = 0.5
SECONDS_KEPT_WARM = 300.0
MOST_SECONDS = 900.0
T = TypeVar("T")
Process = WarmProcess[Message]


@dataclass(frozen=True)
class Part:
    """What a process computes in one go.

    Args:
        function, arguments: with places (heavy_process.Place) where it takes bundles or prompts.
        done, total: parts of the same work that came before, and all of them.
        seconds: that it may take.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    done: int = 0
    total: int = 1
    seconds: float = MOST_SECONDS


Work = Generator[Part, Any, T]  # yields parts, is sent what each returned or thrown what it raised, returns the answer


class InParts(Generic[T]):
    """A function whose parts are computed one by one, so that others have their turn between them (a decorator)."""

    def __init__(self, work: Callable[..., Work[T]]) -> None:
        self.work = work

    def __call__(self, **arguments: Any) -> T:
        """Compute all parts in this process."""
        work, value = self.work(**arguments), None
        while True:
            try:
                part = work.send(value)
            except StopIteration as end:
                return end.value
            value = part.function(**part.arguments)


class Job(Future[Any]):
    """An answer that is or will be computed; cancelled where nobody waits for it any more."""

    def __init__(self, work: Work[Any]) -> None:
        super().__init__()
        self._work = work
        self.part: Part  # that is computed, or comes next
        self.began = 0.0  # when that was handed to a process
        self.waiting: dict[str, float] = {}  # who, and when they last looked
        self.left = 0.0  # when the last of them went
        self.process: Process | None = None  # that computes it now
        self.steps: tuple[int, int] | None = None  # done, and all; None where the function does not tell
        self.go_on()

    def go_on(self, value: Any = None, error: Exception | None = None) -> bool:
        """Take what a part came to, and tell whether there is another; else those who wait have the answer."""
        with suppress(InvalidStateError):  # it was cancelled
            try:
                self.part = self._work.send(value) if error is None else self._work.throw(error)
            except StopIteration as end:
                self.set_result(end.value)
            except Exception as wrong:
                self.set_exception(wrong)
            else:
                return True
        return False


class Pool:
    """A bounded number of processes, and a queue of jobs before them.

    Args:
        most: processes at once.
        command: that starts one.
    """

    def __init__(self, most: int, command: tuple[str, ...] = COMMAND) -> None:
        self._most = most
        self._command = command
        self._queue: list[Job] = []
        self._turns = Turns()
        self._running: list[Job] = []
        self._of: dict[str, Job] = {}  # what each waits for
        self._changed = threading.Condition()
        self._processes: set[Process] = set()
        self._free = 0
        self._sweeping = False
        self._closed = False

    def look(self, job: Job, who: str) -> None:
        """Note that somebody waits for a job, and for no other; a new job enters the queue.

        Args:
            who: a person and, after a space, a place on a page of theirs, where one thing is waited for.
        """
        with self._changed:
            other = self._of.get(who)
            if other is not None and other is not job:
                self._drop(other, who)
            if job.done() or self._closed:
                return
            job.waiting[who] = time.monotonic()
            self._of[who] = job
            if job not in self._queue and job not in self._running:
                self._queue.append(job)
                self._start()

    def leave(self, job: Job, who: str) -> None:
        """Note that somebody waits no longer; where nobody else does, the job is cancelled."""
        with self._changed:
            self._drop(job, who)

    def place(self, job: Job) -> int:
        """Return a job's place in the queue, from 1; 0 where it is computed or done."""
        with self._changed:
            return self._in_turn().index(job) + 1 if job in self._queue else 0

    def counts(self) -> tuple[int, int]:
        """Return how many jobs are computed and how many wait."""
        with self._changed:
            return len(self._running), len(self._queue)

    def warm(self) -> None:
        """Start a process that waits for the first job, with everything imported."""
        with self._changed:
            if not self._processes:
                self._start()

    def close(self) -> None:
        """Cancel everything, and end the processes."""
        with self._changed:
            self._closed = True
            for job in [*self._queue, *self._running]:
                self._cancel(job)
            for process in self._processes:
                process.kill()
            self._changed.notify_all()

    def _in_turn(self) -> list[Job]:
        """Return the queue as it is served."""
        served, waiting = ([_person(job) for job in jobs] for jobs in (self._running, self._queue))
        return [self._queue[place] for place in self._turns.order(served, waiting)]

    def _drop(self, job: Job, who: str) -> None:
        job.waiting.pop(who, None)
        if self._of.get(who) is job:
            del self._of[who]
        if not job.waiting:
            job.left = time.monotonic()
            if job in self._queue:
                self._cancel(job)

    def _cancel(self, job: Job) -> None:
        job.cancel()
        if job in self._queue:
            self._queue.remove(job)
        if job.process is not None:
            job.process.kill()
        for who in job.waiting:
            self._of.pop(who, None)
        job.waiting.clear()

    def _start(self) -> None:
        """Let a process take what waits, a new one where all are busy and there may be one more."""
        self._changed.notify()
        if not self._sweeping:
            self._sweeping = True
            threading.Thread(target=self._sweep, name="heavy sweep", daemon=True).start()
        if self._free < max(1, len(self._queue)) and len(self._processes) < self._most:
            process = Process(self._command, pickle.load, environment=ONE_THREAD)
            self._processes.add(process)
            self._free += 1
            threading.Thread(target=self._serve, args=(process,), name="heavy", daemon=True).start()

    def _serve(self, process: Process) -> None:
        """Hand jobs to a process until it dies, is killed, or has nothing to do for long."""
        usable = True
        while usable and (job := self._next(process)) is not None:
            try:
                came = _computed(process, job)
            except Exception:
                came = None
            more = job.go_on(*came or (None, ProcessDiedError("the process that computed this has ended")))
            with self._changed:
                usable = came is not None and not job.cancelled()
                self._free += usable
                self._running.remove(job)
                job.process = None
                if more and job.waiting:
                    self._queue.append(job)
                else:
                    self._cancel(job)
        process.end()
        with self._changed:
            self._processes.discard(process)
            if self._queue and not self._closed:
                self._start()

    def _next(self, process: Process) -> Job | None:
        """Wait for a job; None where there is none for long, or the process is no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed, SECONDS_KEPT_WARM)
            self._free -= 1
            if self._closed or not self._queue or not process.is_alive:
                return None
            job = self._in_turn()[0]
            self._queue.remove(job)
            self._turns.serve(_person(job))
            job.process, job.began = process, time.monotonic()
            self._running.append(job)
            return job

    def _sweep(self) -> None:
        """Cancel what nobody has looked for, and end the processes of what takes too long."""
        while True:
            time.sleep(SECONDS_BETWEEN_SWEEPS)
            with self._changed:
                now = time.monotonic()
                for job in [*self._queue, *self._running]:
                    for who in [who for who, last in job.waiting.items() if now - last > SECONDS_WAITED_FOR]:
                        self._drop(job, who)
                for job in self._running:
                    if not job.waiting and now - job.left > SECONDS_LEFT:
                        self._cancel(job)
                    elif job.process is not None and now - job.began > job.part.seconds:
                        job.process.kill()
                if not self._queue and not self._running:
                    self._sweeping = False
                    return


def _person(job: Job) -> str:
    """Return who waits for a job, or waits longest."""
    return next(iter(job.waiting), "").partition(" ")[0]


def _computed(process: Process, job: Job) -> tuple[Any, Exception | None]:
    """Return what a process makes of a job's part: the value, or the error.

    Raises:
        ProcessDiedError: the process has died.
    """
    part = job.part
    job.steps = (part.done, part.total) if part.total > 1 else None
    call = pickle.dumps((part.function, part.arguments))  # it is read where errors are told
    process.send(pickle.dumps(call))
    while True:
        message = process.answer()
        if message.ended:
            return message.value, message.error
        job.steps = part.done * message.total + message.done, part.total * message.total


@lru_cache(maxsize=1)
def pool() -> Pool:
    """Return the server's pool."""
    return Pool(limits().heavy_processes, ON_CLUSTER if chosen() == "ray" else COMMAND)
