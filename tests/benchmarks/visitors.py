"""Fifty people on the attention page, without and with a run that trains: how long each waits for a change.

Each of them is a session of its own over the socket that the browser uses; nobody draws what comes back.
Run: python -m tests.benchmarks.visitors [--people N] [--seconds N]
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from tests.e2e.serving import serving
from transformer_core.training.runs.presets import QUICK
from transformer_core.training.runs.queue.launcher import Launcher
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change

THINK_SECONDS = 10.0
ARRIVAL_SECONDS = 20.0
MOST_GROWTH = 2.0
WORDS = ("slow", "dull", "funny", "boring", "brilliant", "never", "always", "hardly", "plot", "film", "actor", "scene")


async def _ask(socket: ClientConnection, page: str, text: str) -> float:
    """Send one change and return the seconds until the script has run."""
    message = BackMsg()
    message.rerun_script.query_string = urlencode({"text": text})
    message.rerun_script.page_name = page
    started = time.perf_counter()
    await socket.send(message.SerializeToString())
    while True:
        answer = ForwardMsg()
        answer.ParseFromString(await socket.recv())  # type: ignore[arg-type]
        if answer.WhichOneof("type") == "script_finished":
            return time.perf_counter() - started


async def _person(address: str, number: int, begin: float, end: float, waits: list[float]) -> None:
    random_of = random.Random(number)
    await asyncio.sleep(random_of.random() * THINK_SECONDS)
    url = address.replace("http", "ws") + "/_stcore/stream"
    async with connect(url, origin=address, subprotocols=["streamlit"], max_size=1 << 26, open_timeout=60) as socket:  # type: ignore
        await _ask(socket, "attention", "a first visit")
        while time.perf_counter() < end:
            await asyncio.sleep(random_of.expovariate(1 / THINK_SECONDS))
            wait = await _ask(socket, "attention", " ".join(random_of.choices(WORDS, k=12)))
            if time.perf_counter() - wait > begin:
                waits.append(wait)


async def _visit(address: str, people: int, seconds: float) -> list[float]:
    waits: list[float] = []
    begin = time.perf_counter() + ARRIVAL_SECONDS  # by then everybody has arrived
    await asyncio.gather(*(_person(address, number, begin, begin + seconds, waits) for number in range(people)))
    return waits


def _report(title: str, waits: list[float]) -> float:
    last = statistics.quantiles(waits, n=20)[-1]
    print(f"{title:28} {len(waits):5} changes  median {statistics.median(waits) * 1e3:6.0f} ms  95th {last * 1e3:6.0f}")
    return last


def while_training(folder: Path, visit: Callable[[], list[float]]) -> list[float]:
    """Visit while a run trains from the first visit to the last."""
    runs, launcher = RunList(folder), Launcher()
    store = runs.create(change(QUICK, epochs=200))
    launcher.start(store)
    while store.status().step < 5:
        time.sleep(0.2)
    waits = visit()
    status = store.status()
    store.ask("stop")
    while store.status().state not in ("stopped", "finished"):
        time.sleep(0.2)
    launcher.close()
    print(f"the run took {status.step} steps meanwhile and was {status.state}")
    return waits


def main() -> int:
    """Print both waits; exit status 1 where the 95th percentile more than doubles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VITRINE_RUNS"] = folder
        with serving(Path(folder) / "log") as address:

            def visit() -> list[float]:
                return asyncio.run(_visit(address, options.people, options.seconds))

            quiet = _report("nobody trains", visit())
            busy = _report("a run trains", while_training(Path(folder), visit))
    print(f"95th percentile: {busy / quiet:.2f} <= {MOST_GROWTH} {'ok' if busy <= MOST_GROWTH * quiet else 'MISSED'}")
    return 0 if busy <= MOST_GROWTH * quiet else 1


if __name__ == "__main__":
    sys.exit(main())
