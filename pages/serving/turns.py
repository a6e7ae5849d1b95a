"""Turns between people: whoever asks for much waits behind whoever asks for little, and holds up nobody."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.requests import Request
from starlette.responses import Response

from pages.serving.owners import person_of


class Turns:
    """Who is served next: everybody's first thing before anybody's second, whoever was served longest ago first."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # of those who have been served, and want more: when, in turns
        self._turns = 0

    def order(self, served: Iterable[str], waiting: Sequence[str]) -> list[int]:
        """Return in which order those who wait are served.

        Args:
            served: for what is computed now, who asked for it.
            waiting: for what waits, in the order in which it came, who asked for it.

        Returns:
            Places in `waiting`.
        """
        asked = Counter(served)
        self._last = {who: turn for who, turn in self._last.items() if who in {*asked, *waiting}}
        keys = []
        for who in waiting:
            asked[who] += 1
            keys.append((asked[who], self._last.get(who, 0)))
        return sorted(range(len(keys)), key=keys.__getitem__)

    def serve(self, who: str) -> None:
        """Note that somebody has a turn."""
        self._turns += 1
        self._last[who] = self._turns


class NoMoreTurnsError(Exception):
    """The server stops; what has not begun never will."""


class Lane:
    """So many things at once, in one event loop; what waits is served in turn."""

    def __init__(self, most: int, of_one: int) -> None:
        """Let `most` things be computed at once, of which one person may have so many."""
        self._most, self._of_one = most, of_one
        self._turns = Turns()
        self._served: list[str] = []
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._ended = False

    def end(self) -> None:
        """Give no more turns, so that the server waits for nothing but what is computed now."""
        self._ended = True
        for _, turn in self._waiting:
            if not turn.done():
                turn.set_exception(NoMoreTurnsError())

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it while the body runs.

        Raises:
            NoMoreTurnsError: the server stops before that.
        """
        if self._ended:
            raise NoMoreTurnsError
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((who, turn))
        self._admit()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled() and turn.exception() is None:
                self._served.remove(who)
            self._admit()

    def _admit(self) -> None:
        self._waiting = [(who, turn) for who, turn in self._waiting if not turn.done()]
        while len(self._served) < self._most:
            order = self._turns.order(self._served, [who for who, _ in self._waiting])
            first = next((at for at in order if self._served.count(self._waiting[at][0]) < self._of_one), None)
            if first is None:
                return
            who, turn = self._waiting.pop(first)
            self._turns.serve(who)
            self._served.append(who)
            turn.set_result(None)


async def in_turn(lane: Lane, request: Request, answer: Callable[[], Awaitable[Response]]) -> Response | None:
    """Answer a request once it has a turn; None where nobody waits for it any more, or the server stops."""
    with suppress(NoMoreTurnsError):
        async with lane.turn(person_of(request)):
            if not await request.is_disconnected():
                return await answer()
    return None
