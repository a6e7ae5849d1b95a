"""Control: what people ask of a running worker, by way of a file, and what readers are told at once.

A request is a file and not a row, so that the database has one writer. Read next: recorder.py.
"""

import os
import threading
from pathlib import Path
from typing import Literal

from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.folder import REQUEST, write_whole
from transformer_core.training.runs.records import State
from transformer_core.training.runs.writer import RunWriter

Request = Literal["pause", "resume", "stop"]
REQUESTS: tuple[Request, ...] = ("pause", "resume", "stop")
SECONDS_BETWEEN_LOOKS = 0.1
SHOWN: dict[Request, State] = {"pause": "paused", "stop": "stopped"}
FINAL = ("finished", "failed", "stopped")


def ask(folder: Path, wish: Request) -> None:
    """Leave a request for the worker; the last one counts.

    Raises:
        RunError: there is no such request, or the folder cannot be written.
    """
    if wish not in REQUESTS:
        raise RunError(f"wish={wish!r} is unknown; it must be one of {', '.join(REQUESTS)}")
    with in_words("the request cannot be written"):
        write_whole(folder / REQUEST, wish)


def withdraw(folder: Path) -> None:
    """Remove a request that nobody has taken."""
    (folder / REQUEST).unlink(missing_ok=True)


class Control:
    """Listen for requests in a thread, and show readers the state that follows from them and from the work's phase.

    A wish is shown as soon as it is heard; the worker follows it after the step in hand.

    Args:
        folder: the run's.
        writer: the run's; where it fails the request still counts.
    """

    def __init__(self, folder: Path, writer: RunWriter) -> None:
        self.wish: Request = "resume"
        self._folder, self._writer = folder, writer
        self._phase: State = "starting"
        self._message, self._place = "", 0
        self._shown: tuple[State, str, int] | None = None
        self._turn = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="control", daemon=True)
        self._thread.start()

    def enter(self, phase: State, *, message: str = "", queue_place: int = 0) -> None:
        """Say what the work is at; this fails where the run cannot be written."""
        with self._turn:
            self._phase, self._message, self._place = phase, message, queue_place
            self._show()

    def stop(self) -> None:
        """Wish to stop, as a signal's handler may."""
        self.wish = "stop"

    def close(self) -> None:
        """Listen no more."""
        self._ended.set()
        self._thread.join()

    def _show(self) -> None:
        state = self._phase if self._phase in FINAL else SHOWN.get(self.wish, self._phase)
        shown = (state, self._message, self._place if state == "queued" else 0)
        if shown != self._shown:
            self._writer.set_state(state, message=shown[1], queue_place=shown[2])
            self._shown = shown

    def _listen(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            heard = self._take()
            with self._turn:
                if heard and self.wish != "stop":
                    self.wish = heard
                try:
                    self._show()
                except RunError:
                    continue  # the worker itself meets the same failure and tells it

    def _take(self) -> Request | None:
        taken = self._folder / f".{REQUEST}.taken"
        try:
            os.replace(self._folder / REQUEST, taken)
            word = taken.read_text(encoding="utf-8")
        except OSError:
            return None
        return next((wish for wish in REQUESTS if wish == word), None)
