"""Control: listens for requests to pause, resume or stop, and writes the state that readers see.

A request is a row of the queue's table and none of the run's database, so that this has one writer.
"""

import threading
from contextlib import suppress
from pathlib import Path

from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.records import WISHED, Request, State

SECONDS_BETWEEN_LOOKS = 0.1
FINAL = ("finished", "failed", "stopped")


class Control:
    """Listen for requests in a thread; write the state that follows from them and from the phase of the work.

    A request is shown as soon as it is read; the worker follows it after the current step.

    Args:
        folder: the run's.
        writer: of the run's database; where it fails, a request still counts.
    """

    def __init__(self, folder: Path, writer: RunWriter) -> None:
        self.request: Request = "resume"
        self._queue, self._run, self._writer = Queue(folder.parent), folder.name, writer
        self._phase: State = "starting"
        self._message = ""
        self._shown: tuple[State, str] | None = None
        self._turn = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="control", daemon=True)
        self._thread.start()

    def enter(self, phase: State, *, message: str = "") -> None:
        """Set the phase of the work.

        Raises:
            RunError: the run cannot be written.
        """
        with self._turn:
            self._phase, self._message = phase, message
            self._show()

    def stop(self) -> None:
        """Request a stop; safe in a signal handler."""
        self.request = "stop"

    def close(self) -> None:
        """Stop listening."""
        self._ended.set()
        self._thread.join()

    def _show(self) -> None:
        state = self._phase if self._phase in FINAL else WISHED.get(self.request, self._phase)
        shown = (state, self._message)
        if shown != self._shown:
            self._writer.set_state(state, message=self._message)
            self._shown = shown

    def _listen(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            heard = None
            with suppress(RunError):  # the table is looked at again
                heard = self._queue.heard(self._run)
            with self._turn:
                if heard and self.request != "stop":
                    self.request = heard
                try:
                    self._show()
                except RunError:
                    continue  # the worker meets the same failure and reports it
