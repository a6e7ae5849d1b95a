"""A worker process as its launcher sees it: a line in, a line out, with everything imported before it is needed.

The lines are described in worker.py. Read next: launcher.py.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformer_core.training.runs.errors import RunError, in_words, without_paths

COMMAND = (sys.executable, "-m", "transformer_core.training.runs.worker")
PROJECT = Path(__file__).parents[3]
LAST_LINES = 3


def environment() -> dict[str, str]:
    """Return the environment of a worker: idle threads sleep, and products on a GPU come out the same each time."""
    path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_WAIT_POLICY": "PASSIVE",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }


class Standby:
    """A worker process that waits for a request.

    Args:
        command: that starts it.

    Raises:
        RunError: the process cannot be started.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self.turn = threading.Lock()
        self.ready = threading.Event()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the process
        with in_words("the worker cannot be started"):
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env=environment(),
                start_new_session=True,
            )
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="standby", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def send(self, request: dict[str, Any]) -> None:
        """Put a request; one that is not ready yet reads it when it is.

        Raises:
            RunError: the process has died.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise RunError(f"the worker has died{self._last_words()}") from None

    def answer(self, patience: float) -> dict[str, Any] | None:
        """Return the next answer, or None where there is none within `patience` seconds.

        Raises:
            RunError: the worker answers that it cannot, or has died.
        """
        try:
            answer = self._answers.get(timeout=patience)
        except queue.Empty:
            return None
        if answer is None:
            raise RunError(f"the worker has died{self._last_words()}")
        if "error" in answer:
            raise RunError(answer["error"])
        return answer

    def part(self) -> None:
        """Let go of a worker that has a run: it goes on alone."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._complaints.close()

    def dismiss(self, *, at_once: bool = False) -> None:
        """End a worker that has no run."""
        self.part()
        if at_once:
            self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                answer = json.loads(line)
                if "ready" in answer:
                    self.ready.set()
                else:
                    self._answers.put(answer)
        self._answers.put(None)
        self._process.wait()

    def _last_words(self) -> str:
        with suppress(OSError, ValueError):
            self._complaints.seek(0)
            lines = self._complaints.read().decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
            return f": {without_paths(' / '.join(lines))[:400]}" if lines else ""
        return ""
