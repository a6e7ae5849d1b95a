"""How many people are there, how often they change something, and how long they wait: counted where messages pass.

A change is a request to run a page, or a part of it, until the server says that the run has ended. No text is looked
at, and nothing is kept but times.
"""

import statistics
import threading
import time
from collections import deque
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

SECONDS_LOOKED_BACK = 60.0
MOST_KEPT = 20_000
ENDS = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
MOST_BYTES_OF_END = 200  # the message that a run has ended is tiny; larger ones are not read


@dataclass(frozen=True)
class Traffic:
    """What the last minute was like; waits in seconds, None where nobody changed anything.

    Args:
        people: connections that are open now.
        changes: a second.
        median, slow: half of the waits, and 95 % of them, were shorter.
    """

    people: int
    changes: float
    median: float | None
    slow: float | None


class Counter:
    """Counts for one server."""

    def __init__(self) -> None:
        self.people = 0
        self._ended: deque[tuple[float, float]] = deque(maxlen=MOST_KEPT)  # when, and how long somebody had waited
        self._lock = threading.Lock()

    def come(self, step: int) -> None:
        """Count a connection that opens, or with −1 one that closes."""
        with self._lock:
            self.people += step

    def took(self, seconds: float) -> None:
        """Count a change that somebody waited for."""
        with self._lock:
            self._ended.append((time.monotonic(), seconds))

    def look(self) -> Traffic:
        """Return what the last minute was like."""
        since = time.monotonic() - SECONDS_LOOKED_BACK
        with self._lock:
            waits = sorted(wait for at, wait in self._ended if at >= since)
        if not waits:
            return Traffic(self.people, 0.0, None, None)
        slow = waits[min(len(waits) - 1, round(0.95 * len(waits)))]
        return Traffic(self.people, len(waits) / SECONDS_LOOKED_BACK, statistics.median(waits), slow)


COUNTER = Counter()


class CountChanges:
    """Count people and waits on the socket that browsers use (ASGI middleware)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on as it is."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        asked: deque[float] = deque(maxlen=1)

        async def hear() -> Message:
            message = await receive()
            if message.get("bytes") and is_change(message["bytes"]):
                asked.append(time.monotonic())
            return message

        async def tell(message: Message) -> None:
            await send(message)
            data = message.get("bytes")
            if asked and data and len(data) <= MOST_BYTES_OF_END and _is_end(data):
                COUNTER.took(time.monotonic() - asked.pop())

        COUNTER.come(1)
        try:
            await self._app(scope, hear, tell)
        finally:
            COUNTER.come(-1)


def is_change(data: bytes) -> bool:
    """Tell whether a browser's message asks to run a page."""
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    return message.WhichOneof("type") == "rerun_script"


def _is_end(data: bytes) -> bool:
    message = ForwardMsg()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    return message.WhichOneof("type") == "script_finished" and message.script_finished in ENDS
