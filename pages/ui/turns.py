"""Turns between people: whoever asks for much waits behind whoever asks for little, and holds up nobody."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager


def in_turn(served: Iterable[str], waiting: Sequence[str]) -> list[int]:
    """Return in which order those who wait are served: everybody's first thing, then everybody's second, and so on.

    Args:
        served: for what is computed now, who asked for it.
        waiting: for what waits, in the order in which it came, who asked for it.

    Returns:
        Places in `waiting`.
    """
    asked = Counter(served)
    rounds = []
    for who in waiting:
        asked[who] += 1
        rounds.append(asked[who])
    return sorted(range(len(rounds)), key=rounds.__getitem__)


class Lane:
    """So many things at once, in one event loop; what waits is served in turn."""

    def __init__(self, most: int) -> None:
        """Let `most` things be computed at once."""
        self._most = most
        self._served: list[str] = []
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it while the body runs."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((who, turn))
        self._admit()
        try:
            await turn
            yield
        finally:
            if turn.cancelled():
                self._waiting.remove((who, turn))
            else:
                self._served.remove(who)
            self._admit()

    def _admit(self) -> None:
        while self._waiting and len(self._served) < self._most:
            first = in_turn(self._served, [who for who, _ in self._waiting])[0]
            who, turn = self._waiting.pop(first)
            if not turn.cancelled():
                self._served.append(who)
                turn.set_result(None)
