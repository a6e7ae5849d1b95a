"""A warm process: Python with everything imported that waits for a request, for a run or for a heavy computation.

It says first that it is ready; what it is asked, what it answers and how that is written is up to its two ends. Who
started it sends requests, takes messages one by one, and ends it with all that it has started or lets it go on alone.
"""

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Generic, TypeVar

from transformer_core.kept import PROJECT

NICENESS = 10  # pages have priority
LAST_LINES = 3
Message = TypeVar("Message")


class ProcessDiedError(RuntimeError):
    """A process ended before it answered: killed, out of memory, or it took too long."""


class WarmProcess(Generic[Message]):
    """A warm process as who started it sees it.

    Args:
        command: that starts it.
        read: takes the next message from a pipe; what it raises is the end.
        environment: variables beside those of this process.
        keeps_errors: what it writes to stderr is kept for `last_words`; else it is written where this process's is.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        read: Callable[[IO[bytes]], Message],
        *,
        environment: Mapping[str, str],
        keeps_errors: bool = False,
    ) -> None:
        self.ready = threading.Event()
        self._read = read
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._open = ExitStack()  # as long as the connection
        self._errors = self._open.enter_context(tempfile.TemporaryFile()) if keeps_errors else None  # noqa: SIM115
        path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **environment, "PYTHONPATH": path},
                start_new_session=True,
            )
        except OSError:
            self._open.close()
            raise
        threading.Thread(target=self._listen, name="warm process", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def send(self, request: bytes) -> None:
        """Send a request; a process that is not ready yet reads it later.

        Raises:
            ProcessDiedError: it has died, or was let go.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise self.died() from None

    def answer(self, patience: float | None = None) -> Message:
        """Return the next message.

        Args:
            patience: seconds; None waits for ever.

        Raises:
            TimeoutError: there is none within `patience`.
            ProcessDiedError: it has died.
        """
        try:
            message = self._messages.get(timeout=patience)
        except queue.Empty:
            raise TimeoutError from None
        if message is None:
            self._messages.put(None)  # for who asks after this
            raise self.died()
        return message

    def died(self) -> Exception:
        """Return the error that says that it has died, and why."""
        return ProcessDiedError("the process that computed this has ended")

    def last_words(self) -> str:
        """Return the last lines that it wrote to stderr, "" where they are not kept."""
        if self._errors is None:
            return ""
        with suppress(OSError, ValueError):  # it was let go
            self._errors.seek(0)
            return " / ".join(self._errors.read().decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:])
        return ""

    def let_go(self) -> None:
        """Close the connection; a process that has what it needs goes on alone, another ends."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._open.close()

    def kill(self) -> None:
        """Kill it, and all that it has started."""
        if self.is_alive:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (AttributeError, OSError):  # Windows has no groups
                self._process.kill()

    def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self.kill()
        self.let_go()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe, suppress(Exception):
            self._read(pipe)
            self.ready.set()
            while True:
                self._messages.put(self._read(pipe))
        self._messages.put(None)
        self._process.wait()


def stand_by() -> IO[bytes]:
    """Give way to pages, and return where this process's messages go; what a library prints is none and goes to stderr.

    Call it first in a warm process, before anything heavy is done.
    """
    with suppress(OSError, AttributeError):
        os.nice(NICENESS)
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return messages
