"""The launcher: starts workers for a server, and keeps one warm so that a run begins within a second.

Workers are processes of this machine that outlive their server. Read next: worker.py.
"""

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer_core.training.runs import control
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.estimate import Estimate
from transformer_core.training.runs.folder import LAUNCHED, Data, put_data
from transformer_core.training.runs.records import ENDED
from transformer_core.training.runs.slots import Queue
from transformer_core.training.runs.standby import COMMAND, Standby
from transformer_core.training.runs.store import NEVER_STARTED, RunStore
from transformer_core.training.spec import RunSpec

SECONDS_BEFORE_NEXT = 8.0
PATIENCE_WITH_BUSY = 1.5
PATIENCE_WITH_START = 5.0
PATIENCE_WITH_ESTIMATE = 120.0


class Launcher:
    """Start runs on this machine; any number of threads and of servers may do so at once.

    Args:
        command: that starts a worker.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = tuple(command)
        self._standby: Standby | None = None
        self._turn = threading.Lock()
        self._estimating = threading.Lock()
        self._timer: threading.Timer | None = None
        self._closed = False

    def warm(self) -> None:
        """Have a worker stand by; returns at once, while it imports what it needs.

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
        with _claiming(store):
            status = store.status()
            if status.state != "interrupted" or not status.message.startswith(NEVER_STARTED):
                raise RunError(f"run {store.id} was started before; it is {status.state}")
        self._launch(store)

    def resume(self, store: RunStore) -> None:
        """Let a run go on: one that is paused, or one that ended before its last step, from its last checkpoint.

        Raises:
            RunError: it is under way or has finished, too many wait, or the worker cannot be started.
        """
        status = store.status()
        if status.state == "paused" and status.alive:
            store.ask("resume")
            return
        with _claiming(store):
            status = store.status()
            if status.state == "finished" or status.state not in ENDED:
                raise RunError(f"run {store.id} cannot be resumed; it is {status.state}")
        self._launch(store)

    def estimate(self, spec: RunSpec, data: Data | None = None) -> Estimate:
        """Measure how long a run would take; about a second where the data were made before.

        Args:
            spec: the run's.
            data: what would lie in the file that spec.data.file names.

        Raises:
            RunError: the run cannot be made, or others wait for estimates.
        """
        if not self._estimating.acquire(timeout=PATIENCE_WITH_ESTIMATE):
            raise RunError("others wait for estimates; try again later")
        try:
            with _folder_with(spec, data) as folder, self._taking_turns() as standby:
                standby.send({"do": "estimate", "spec": spec.to_json(), "folder": folder and str(folder)})
                answer = standby.answer(PATIENCE_WITH_ESTIMATE)
                if answer is None:
                    standby.dismiss(at_once=True)
                    raise RunError(f"the estimate takes more than {PATIENCE_WITH_ESTIMATE:g} s; use less data")
                return Estimate(**answer["estimate"])
        finally:
            self._estimating.release()

    def close(self) -> None:
        """Dismiss the worker that stands by; runs go on."""
        with self._turn:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            standby, self._standby = self._standby, None
        if standby is not None:
            standby.dismiss(at_once=True)

    def _launch(self, store: RunStore) -> None:
        """Bring a worker to a run that is claimed; the claim goes where none comes."""
        queue = Queue(store.folder.parent)
        try:
            control.withdraw(store.folder)
            queue.join(store.id)
            self._hand_over(store.folder)
        except BaseException:
            (store.folder / LAUNCHED).unlink(missing_ok=True)
            with suppress(RunError):
                queue.leave(store.id)
            raise

    def _hand_over(self, folder: Path) -> None:
        """Give a run to the worker that stands by, or to a new one where that is busy."""
        standby = self._taken_standby()
        try:
            standby.send({"do": "run", "folder": str(folder.absolute())})
            if standby.ready.is_set():
                standby.answer(PATIENCE_WITH_START)
        except RunError:
            standby.dismiss(at_once=True)
            raise
        standby.part()
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
        """Have another worker stand by soon, but not in the first seconds of the run, which it would slow down."""
        with self._turn:
            if self._closed or (self._timer is not None and self._timer.is_alive()):
                return
            self._timer = threading.Timer(SECONDS_BEFORE_NEXT, self.warm)
            self._timer.daemon = True
            self._timer.start()

    @contextmanager
    def _taking_turns(self) -> Iterator[Standby]:
        """Hold the worker that stands by for the body; a run takes another meanwhile."""
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


@contextmanager
def _claiming(store: RunStore) -> Iterator[None]:
    """Let the body decide whether a run may start, then mark that a worker is on its way; one at a time does so."""
    with Queue(store.folder.parent).turn():
        yield
        with in_words("the run cannot be started"):
            (store.folder / LAUNCHED).touch()


@contextmanager
def _folder_with(spec: RunSpec, data: Data | None) -> Iterator[Path | None]:
    """Lay data where a run would find them."""
    if data is None or spec.data.file is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as scratch:
        put_data(data, Path(scratch) / spec.data.file)
        yield Path(scratch)
