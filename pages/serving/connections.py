"""How long a connection may take to ask, and how many may be asking at once: half requests are no way to fill a server.

uvicorn waits for the rest of a request for ever, and Streamlit, which starts it, hands it none of its bounds. Time is
counted in looks, so that a server that was busy itself takes nobody for slow.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

SECONDS_BETWEEN_LOOKS = 1.0
LOOKS = 10  # that a request's head may take, and that a body or an answer may stand still
LEAST_BYTES = 1_000  # that a body brings meanwhile
MOST_ASKING, FILES_FOR_ONE = 1_000, 8
GONE, HEAD, BODY, ANSWER = "gone", "head", "body", "answer"


def most_asking(open_files: int) -> int:
    """Return how many connections may be asking at once where so many files may be open."""
    return max(1, min(open_files // FILES_FOR_ONE, MOST_ASKING))


@dataclass
class _Phase:
    """What a connection does, and for how long.

    Args:
        kind: it sends a request's head (or nothing yet), or its body, or is answered; or it is a socket now, or gone.
        request: uvicorn's, by which two phases of a kind are told apart.
        looks: at it since it began or last moved.
        received: bytes since then.
        left: bytes of the answer that it had not taken then.
    """

    kind: str
    request: Any = None
    looks: int = 0
    received: int = 0
    left: int = 0


def _phase(connection: Any) -> _Phase:
    """Return what one of uvicorn's connections does now."""
    request = connection.cycle
    if connection.transport.is_closing() or connection.transport.get_protocol() is not connection:
        return _Phase(GONE)
    if request is None or request.response_complete:
        return _Phase(HEAD, request)
    return _Phase(BODY if request.more_body else ANSWER, request)


class Connections:
    """The connections of a server, of which those go that ask too slowly, or take no answer."""

    def __init__(self, most: int) -> None:
        """Let at most so many ask at once; who asks longest goes, of the address that has the most of them."""
        self._most = self._room = most
        self._phases: dict[Any, _Phase] = {}

    @contextmanager
    def watched(self, kind: Any) -> Iterator[None]:
        """Watch each connection of a class of uvicorn's that comes meanwhile.

        Args:
            kind: HttpToolsProtocol or H11Protocol.
        """
        made, received = kind.connection_made, kind.data_received

        def connection_made(connection: Any, transport: asyncio.Transport) -> None:
            made(connection, transport)
            self._phases[connection] = _phase(connection)
            self._make_room()

        def data_received(connection: Any, data: bytes) -> None:
            if connection in self._phases:
                self._phases[connection].received += len(data)
            received(connection, data)

        kind.connection_made, kind.data_received = connection_made, data_received
        try:
            yield
        finally:
            kind.connection_made, kind.data_received = made, received

    async def keep_looking(self) -> None:
        """Look once a second, for ever."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            self.look()

    def look(self) -> None:
        """End the connections that have stood still for too many looks."""
        for connection in list(self._phases):
            phase = self._now(connection)
            if phase.kind == GONE:
                del self._phases[connection]
            elif _moves(connection, phase):
                phase.looks, phase.received = 0, 0
                phase.left = connection.transport.get_write_buffer_size()
            elif phase.looks < LOOKS:
                phase.looks += 1
            else:
                connection.transport.abort()
        self._room = self._most - len(self._asking())

    def _now(self, connection: Any) -> _Phase:
        """Return what a connection does, and since when."""
        before, now = self._phases[connection], _phase(connection)
        if (before.kind, before.request) != (now.kind, now.request):
            self._phases[connection] = before = now
        return before

    def _asking(self) -> list[Any]:
        """Return the connections that have not asked whole, the oldest first."""
        return [connection for connection in self._phases if self._now(connection).kind in (HEAD, BODY)]

    def _make_room(self) -> None:
        """Where one too many asks, end a tenth of them."""
        self._room -= 1
        if self._room >= 0:
            return
        asking = self._asking()
        self._room = self._most - len(asking)
        if self._room < 0:
            ((most, _),) = Counter(map(_address, asking)).most_common(1)
            going = [connection for connection in asking if _address(connection) == most][: 1 + self._most // 10]
            self._room += len(going)
            for connection in going:
                connection.transport.abort()


def _address(connection: Any) -> str:
    return connection.client[0] if connection.client else ""


def _moves(connection: Any, phase: _Phase) -> bool:
    """Tell whether a body or an answer goes on, as far as that is up to the other end."""
    if phase.kind == BODY:
        return phase.received >= LEAST_BYTES or connection.flow.read_paused
    taken = connection.transport.get_write_buffer_size() != phase.left
    return phase.kind == ANSWER and (taken or not connection.flow.write_paused)
