"""The server's log: one line a start, a refusal and an error, with nothing in it that a visitor wrote.

Streamlit and uvicorn log each visitor's coming and going, and each error over dozens of lines with its message, which
may quote a text. Here an error is its kind and the place in the code; `--logger.level debug` leaves all as they log it.
"""

import logging
import sys
import threading
import time
import traceback
from pathlib import Path

import streamlit as st

from transformer_core.kept import PROJECT

NEEDLESS = (
    "streamlit.error_util",  # what it logs comes to show_error as well
    "streamlit.runtime.scriptrunner_utils.script_run_context",  # at the start words are looked up outside any page
)
NO_HANDSHAKE = "ASGI callable returned without completing handshake."  # what uvicorn says of a socket that was refused
SECONDS_APART = 60.0


class Seldom(logging.Filter):
    """Let a line of one place in the code through once a minute; the next one says how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._last: dict[tuple[str, int, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is let through."""
        if record.msg == NO_HANDSHAKE:
            return False
        place = (record.pathname, record.lineno, record.args if record.name == "vitrine" else None)
        with self._lock:
            at, left_out = self._last.get(place, (-SECONDS_APART, 0))
            now = time.monotonic()
            if now - at < SECONDS_APART:
                self._last[place] = (at, left_out + 1)
                return False
            self._last[place] = (now, 0)
        if left_out:
            record.msg = f"{record.msg} ({left_out} more like it)"
        return True


class OneLine(logging.Formatter):
    """Write a record on one line; of an error its kind and place, of another package's values the numbers alone."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        args = record.args if isinstance(record.args, tuple) else ()
        ours = record.name == "vitrine"
        whole = ours or all(isinstance(value, int | float) for value in args)
        said = " ".join((record.getMessage() if whole else str(record.msg)).split())
        error = record.exc_info[1] if record.exc_info else None
        parts = [self.formatTime(record), record.levelname.lower(), said if ours else f"{record.name}: {said}"]
        parts += [_place(error)] if error else []
        return " ".join(parts)


def _place(error: BaseException) -> str:
    """Return an error's kind, the last line of the project that it passed through, and where it arose if elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame
        for frame in frames
        if Path(frame.filename).is_relative_to(PROJECT) and "site-packages" not in frame.filename
    ]
    places = [f"at {Path(ours[-1].filename).relative_to(PROJECT)}:{ours[-1].lineno}"] if ours else []
    if frames and (not ours or frames[-1] is not ours[-1]):
        places.append(f"from {Path(frames[-1].filename).name}:{frames[-1].lineno}")
    return " ".join([type(error).__name__, *places])


def quiet_logs() -> None:
    """Let every logger write one line a thing, and none for a visitor's coming and going.

    Loggers that come later write as their package has them write: call it before the start and once all are there.
    """
    if st.get_option("logger.level") == "debug":
        return
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    handler.addFilter(Seldom())
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)
    logging.getLogger("vitrine").setLevel(logging.INFO)
    for name in NEEDLESS:
        logging.getLogger(name).disabled = True
    log = logging.getLogger("vitrine")
    sys.unraisablehook = lambda left: log.error("something could not be cleared away:", exc_info=left.exc_value)
