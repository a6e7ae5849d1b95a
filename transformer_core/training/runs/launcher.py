"""The launcher: the Runner of this machine. It starts worker processes, and keeps one warm, so that runs start at once.

A run that waits has no process: a worker that ends goes on with the next, and the launcher looks at the queue every
second. Workers outlive their server. The lines that they read and write are described in worker/process.py.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from transformer_core.training.runs.asking import ask_run, start_run
from transformer_core.training.runs.errors import RunError, in_words, without_paths
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.database import worker_of
from transformer_core.training.runs.store.folder import LAUNCH, LOCK, Data, has_worker, is_held, put_data
from transformer_core.training.runs.store.records import Estimate, Presence, Request
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec
from transformer_core.warm_process import WarmProcess

COMMAND = (sys.executable, "-P", "-m", "transformer_core.training.runs.worker.process")
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}  # idle threads sleep; GPUs repeat
SECONDS_BETWEEN_LOOKS, SECONDS_BEFORE_NEXT = 1.0, 8.0
PATIENCE_WITH_BUSY = 1.5
PATIENCE_WITH_START, PATIENCE_WITH_IMPORTS = 5.0, 120.0
PATIENCE_WITH_ESTIMATE = 120.0
PATIENCE_WITH_STOP, PATIENCE_WITH_LAUNCH = 3.0, 30.0


class Standby(WarmProcess[dict[str, Any]]):
    """A worker process as its launcher sees it: it waits, with everything imported, for a request.

    Args:
        command: that starts it.

    Raises:
        RunError: the process cannot be started.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self.turn = threading.Lock()
        with in_words("the worker cannot be started"):
            super().__init__(
                command, lambda pipe: json.loads(pipe.readline()), environment=ENVIRONMENT, keeps_errors=True
            )

    def ask(self, **request: str | None) -> None:
        """Send a request; a worker that is not ready yet reads it later.

        Raises:
            RunError: the worker has died.
        """
        self.send(json.dumps(request).encode() + b"\n")

    def answer(self, patience: float | None = None) -> dict[str, Any]:
        """Return the next answer, as WarmProcess.answer; where that is an error, raise RunError."""
        answer = super().answer(patience)
        if "error" in answer:
            raise RunError(answer["error"])
        return answer

    def died(self) -> RunError:
        """Return the error that says that the worker has died, and its last words."""
        words = without_paths(self.last_words())[:400]
        return RunError(f"the worker has died{words and f': {words}'}")


class Launcher:
    """Start runs on this machine; any number of threads and servers may do so at once.

    Args:
        command: that starts a worker process.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = tuple(command)
        self._standby: Standby | None = None
        self._turn = threading.Lock()
        self._estimating = threading.Lock()
        self._timer: threading.Timer | None = None
        self._closed = False
        self._roots: set[Path] = set()
        self._watching: threading.Thread | None = None
        self._ended = threading.Event()

    def warm(self) -> None:
        """Start a worker that waits for a request; return at once, while it imports what it needs.

        Raises:
            RunError: the process cannot be started.
        """
        with self._turn:
            if not self._closed and (self._standby is None or not self._standby.is_alive):
                self._standby = Standby(self._command)

    def start(self, store: RunStore) -> None:
        """Start a run, or put it in the queue.

        Raises:
            RunError: it was started before, too many wait, or the worker cannot be started.
        """
        start_run(store, self._enter)

    def ask(self, store: RunStore, request: Request) -> None:
        """Ask a run's worker to pause, to resume or to stop, after its current step; see Runner.

        Raises:
            RunError: the run is in no state to do so, too many wait, or the worker cannot be started.
        """
        ask_run(store, request, self._enter)

    def end(self, folder: Path) -> None:
        """Take a run out of the queue, ask its worker to stop, and kill it if it has not after three seconds.

        Raises:
            RunError: it cannot be killed.
        """
        queue = Queue(folder.parent)
        queue.leave(folder.name)
        if not has_worker(folder):
            return
        with suppress(RunError):
            queue.ask(folder.name, "stop")
        is_free_within(PATIENCE_WITH_LAUNCH, folder / LAUNCH)
        if is_free_within(PATIENCE_WITH_STOP, folder / LOCK):
            return
        worker = worker_of(folder)
        if worker is not None:
            with suppress(ProcessLookupError):
                os.kill(worker, getattr(signal, "SIGKILL", signal.SIGTERM))
        if not is_free_within(PATIENCE_WITH_STOP, folder / LOCK):
            raise RunError(f"the worker of run {folder.name} cannot be stopped")

    def require_room(self, root: Path) -> None:
        """Raise RunError where too many runs wait for another to join."""
        Queue(root).require_room()

    def is_alive(self, folder: Path) -> bool:
        """Tell whether a run computes, starts, waits or pauses."""
        return bool(self.live([folder]))

    def live(self, folders: Iterable[Path]) -> set[Path]:
        """Return those of some runs' folders whose run is alive."""
        folders = list(folders)
        return Queue(folders[0].parent).live(folders) if folders else set()

    def presence(self, folder: Path) -> Presence:
        """Return how far a run is from computing."""
        return Queue(folder.parent).presence(folder.name)

    def look(self, root: Path) -> dict[str, RunError]:
        """Start a worker for each run that waits and has a slot, now and, since workers may be killed, every second.

        Returns:
            The runs for which none could be started, with the reason; they have left the queue.
        """
        failed = {}
        with self._turn:
            self._roots.add(root)
            if self._watching is None and not self._closed:
                self._watching = threading.Thread(target=self._watch, name="queue", daemon=True)
                self._watching.start()
        queue = Queue(root)
        while queue.runs() and (claimed := queue.claim_next()) is not None:
            run, claim = claimed
            try:
                self._hand_over(root / run, claim)
            except RunError as error:
                failed[run] = error
        return failed

    def estimate(self, spec: RunSpec, data: Data | None = None) -> Estimate:
        """Measure how long a run would take; this takes about a second where the data were made before.

        Args:
            spec: the run's.
            data: content of the file that spec.data.file names.

        Raises:
            RunError: the run cannot be made, or too many wait for estimates.
        """
        if not self._estimating.acquire(timeout=PATIENCE_WITH_ESTIMATE):
            raise RunError("others wait for estimates; try again later")
        try:
            with folder_with(spec, data) as folder, self._taking_turns() as standby:
                standby.ask(do="estimate", spec=spec.to_json(), folder=folder and str(folder))
                try:
                    return Estimate(**standby.answer(PATIENCE_WITH_ESTIMATE)["estimate"])
                except TimeoutError as late:
                    standby.end()
                    raise RunError(
                        f"the estimate takes more than {PATIENCE_WITH_ESTIMATE:g} s; use less data"
                    ) from late
        finally:
            self._estimating.release()

    def close(self) -> None:
        """End the waiting worker; runs go on."""
        with self._turn:
            self._closed = True
            self._ended.set()
            if self._timer is not None:
                self._timer.cancel()
            standby, self._standby = self._standby, None
        if standby is not None:
            standby.end()

    def _enter(self, store: RunStore, require: Callable[[], None]) -> None:
        """Put a run into the queue, and start it if it is its turn."""
        root = store.folder.parent
        Queue(root).join(store.id, require)
        failed = self.look(root)
        if store.id in failed:
            raise failed[store.id]

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            for root in list(self._roots):
                with suppress(RunError):
                    self.look(root)

    def _hand_over(self, folder: Path, claim: FileLock) -> None:
        """Give a run to the waiting worker, or to a new one where that is busy; the claim is held until it has it.

        Raises:
            RunError: the worker cannot be started, or does not take the run.
        """
        try:
            standby = self._taken_standby()
            standby.ask(do="run", folder=str(folder.absolute()))
        except RunError as error:
            _withdraw(folder, claim, error)
            raise
        warm = standby.ready.is_set()
        if not _has_taken(standby, folder, claim, PATIENCE_WITH_START if warm else 0.0):
            threading.Thread(target=_wait_for, args=(standby, folder, claim), name="start", daemon=True).start()
        self._call_next()

    def _taken_standby(self) -> Standby:
        with self._turn:
            standby = self._standby
        if standby is not None and standby.is_alive and standby.turn.acquire(timeout=PATIENCE_WITH_BUSY):
            with self._turn:
                if self._standby is standby:
                    self._standby = None
                    return standby
            standby.turn.release()
        return Standby(self._command)

    def _call_next(self) -> None:
        """Start the next waiting worker soon, but not in the first seconds of the run, which it would slow down."""
        with self._turn:
            if self._closed or (self._timer is not None and self._timer.is_alive()):
                return
            self._timer = threading.Timer(SECONDS_BEFORE_NEXT, self.warm)
            self._timer.daemon = True
            self._timer.start()

    @contextmanager
    def _taking_turns(self) -> Iterator[Standby]:
        """Hold the waiting worker for the body; a run that starts meanwhile takes another."""
        while True:
            self.warm()
            with self._turn:
                standby = self._standby
            if standby is None:
                raise RunError("the server is closing")
            with standby.turn:
                if standby is self._standby:
                    yield standby
                    return


def is_free_within(seconds: float, lock: Path) -> bool:
    """Wait for at most so many seconds until no process holds a lock, and tell whether that is so."""
    until = time.monotonic() + seconds
    while is_held(lock):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _has_taken(standby: Standby, folder: Path, claim: FileLock, patience: float) -> bool:
    """Tell whether a worker has taken a run within so many seconds.

    Raises:
        RunError: it does not take it; the run has left the queue.
    """
    try:
        standby.answer(patience)
    except TimeoutError:
        return False
    except RunError as error:
        _withdraw(folder, claim, error)
        standby.end()
        raise
    claim.release()
    standby.let_go()
    return True


def _wait_for(standby: Standby, folder: Path, claim: FileLock) -> None:
    """Wait for a worker that still imports what it needs; a reason why it takes no run is left in the run's log."""
    with suppress(RunError):
        if not _has_taken(standby, folder, claim, PATIENCE_WITH_IMPORTS):
            standby.end()
            _withdraw(folder, claim, RunError(f"the worker did not start within {PATIENCE_WITH_IMPORTS:g} s"))


def _withdraw(folder: Path, claim: FileLock, error: RunError) -> None:
    """Take a run that no worker can take out of the queue, and leave the reason in its log."""
    with suppress(RunError):
        Queue(folder.parent).leave(folder.name, str(error))
    claim.release()


@contextmanager
def folder_with(spec: RunSpec, data: Data | None) -> Iterator[Path | None]:
    """Write data into a folder as a run has them; None where the spec names no file."""
    if data is None or spec.data.file is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as scratch:
        put_data(data, Path(scratch) / spec.data.file)
        yield Path(scratch)
