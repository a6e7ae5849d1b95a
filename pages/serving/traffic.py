"""How many people are there, how often they change something, and how long they wait: counted where messages pass.

A change is a request to run a page, or a part of it, until the server says that the run has ended; what looks again by
itself (watch) makes none. No text is looked at, and nothing is kept but times.
"""

import statistics
import threading
import time
from collections import deque
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.serving.inside_streamlit import ended_in, is_session, of_whole_page, run_in, session_before

SECONDS_LOOKED_BACK = 60.0
MOST_KEPT = 20_000
MOST_BYTES_OF_END = 400  # the message that a run has ended is tiny; larger ones are not read
MOST_SECONDS_AHEAD = 5.0  # that a change lets nothing look again, should its end never be said


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


class _Change:
    """A request to run a part of a page, or with "" all of it, whose end has not been said."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._another = False  # a run in the place of its own ends it
        self.since = time.monotonic()

    def ends_with(self, data: bytes) -> bool:
        """Tell whether a message of the server says that it has ended."""
        end = ended_in(data)
        if end is None:
            return False
        for_good, ran = end
        if for_good:
            return self._another or self._part in ran
        self._another |= bool(self._part) and self._part in ran  # st.rerun
        return False


class ChangesFirst:
    """Count people and waits on the socket that browsers use (ASGI middleware), and let changes go first.

    What looks again by itself does so when no change is underway. Streamlit would else leave it on the page where the
    change took it away, until the next change (its issue 16708).

    A browser whose session was lost with its process asks the next one for a part of a page that was never run there,
    which Streamlit would leave without an answer: all of the page runs instead.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on as it is, but for looks while a change is underway."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        change: _Change | None = None  # the last one, until its end is said
        before = session_before(Headers(scope=scope).get("sec-websocket-protocol", ""))
        lost: bool | None = None if before else False  # known once a run is asked for

        async def hear() -> Message:
            nonlocal change, lost
            while True:
                message = await receive()
                run = run_in(message)
                if run is None:
                    return message
                if lost is None:
                    lost = not is_session(before)
                if lost:
                    lost, message = False, of_whole_page(message)
                    run = run_in(message) or run
                if not run.is_auto_rerun:
                    change = _Change(run.fragment_id)
                    return message
                if change is None or time.monotonic() - change.since > MOST_SECONDS_AHEAD:
                    return message

        async def tell(message: Message) -> None:
            nonlocal change
            await send(message)
            data = message.get("bytes")
            if change is not None and data and len(data) <= MOST_BYTES_OF_END and change.ends_with(data):
                COUNTER.took(time.monotonic() - change.since)
                change = None

        COUNTER.come(1)
        try:
            await self._app(scope, hear, tell)
        finally:
            COUNTER.come(-1)
