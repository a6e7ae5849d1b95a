"""An hour of visits: the server's memory is level once every page has been seen often."""

import asyncio
import random
import statistics
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pages.kit.navigation import ICONS
from tests.benchmarks.visitors import WORDS, ask, memory_mb
from tests.helpers.browser import started
from tests.helpers.pages import finished
from tests.helpers.visitor import socket_of

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3 * 3600)]
PEOPLE, LAPS, ROUNDS = 10, 30, 150  # of a lap; in a round each of them makes a change on a page of theirs
MOST_GROWTH_MB = 15.0


async def laps(address: str, process: int, many: int) -> list[float]:
    """Return the memory of a server after each lap, in MB; visitors stay for a lap."""
    found, pick = [], random.Random(0)
    for _ in range(many):
        async with AsyncExitStack() as there:
            sockets = [await there.enter_async_context(socket_of(address)) for _ in range(PEOPLE)]
            for _ in range(ROUNDS):
                texts = [" ".join(pick.choices(WORDS, k=pick.randint(1, 40))) for _ in sockets]
                pages = [pick.choice(list(ICONS)) for _ in sockets]
                await asyncio.gather(*map(ask, sockets, pages, texts))
        found.append(memory_mb(process))
    return found


def test_memory_is_level(tmp_path: Path) -> None:
    with started(tmp_path / "log", "--server.disconnectedSessionTTL", "1") as (address, process):
        found = finished(laps(address, process, LAPS))
    third = LAPS // 3
    growth = statistics.median(found[-third:]) - statistics.median(found[third : 2 * third])
    assert growth < MOST_GROWTH_MB, found
