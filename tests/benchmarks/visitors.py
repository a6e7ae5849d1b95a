"""Many people at once: what an arrival costs, how long 200 wait who arrive together, how long 50 wait for a change.

Each of them is a session of its own over the socket that the browser uses; nobody draws what comes back. The changes
are made on the attention page, without and with a run that trains. Then ten ask for what takes seconds, one thing after
the other, while a few type; at last all leave, and it is measured how long the server goes on computing.
Run: python -m tests.benchmarks.visitors [--people N] [--seconds N] [--only heavy|crowds]
"""

import argparse
import asyncio
import itertools
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection

from pages.kit.navigation import ICONS
from tests.helpers.browser import answering, started
from tests.helpers.visitor import socket_of, until
from transformer_core.training.runs.launcher import Launcher
from transformer_core.training.runs.presets import QUICK
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change

THINK_SECONDS = 10.0
ARRIVAL_SECONDS = 20.0
MOST_GROWTH = 2.0
FIRST_VISITS, PAGE, MOST_CPU_MS = 20, "attention", 40.0
CROWD, CROWD_SECONDS, MOST_WAIT_SECONDS = 200, 10.0, 3.0
IDLE, MOST_IDLE_MB = 500, 250.0
HEAVY_PEOPLE, LOOKED_AT_SECONDS, LIGHT_PEOPLE, LIGHT_THINK_SECONDS = 10, 2.0, 5, 1.0
MOST_LIGHT_SECONDS, MOST_SECONDS_AFTER = 0.25, 12.0
HEAVY = (  # a page and its parts, each with numbers that nobody else asks for
    ("norm", {"norm_part": "depth", "norm_trained": "8.pre.{seed}", "norm_seed": "{seed}", "norm_depth": "8"}),
    ("why", {"why": "values", "shown": "why_values", "why_seed": "{seed}"}),
    ("encoder", {"encoder_part": "agree", "encoder_shuffle_open": "on", "text": "A film of {number} slow scenes"}),
    ("translation", {"translation_part": "search", "translation_seed": "{seed}", "translation_epochs": "16"}),
    ("feed_forward", {"feed_forward_part": "neurons", "text": "A film of {number} dull and slow scenes"}),
    (
        "encoder",
        {"encoder_part": "tokens", "shown": "encoder_tokens", "text": "It took {number} slow and dull minutes"},
    ),
)
WORDS = ("slow", "dull", "funny", "boring", "brilliant", "never", "always", "hardly", "plot", "film", "actor", "scene")

PLAIN = """
import numpy as np, streamlit as st
text = st.text_input("Text", st.query_params.get("text", ""))
words = text.split()
st.dataframe(np.random.default_rng(len(text)).random((len(words), len(words))))
"""


async def ask(socket: ClientConnection, page: str, text: str) -> float:
    """Send one change and return the seconds until the script has run."""
    message = BackMsg()
    message.rerun_script.query_string = urlencode({"text": text})
    message.rerun_script.page_name = page
    started = time.perf_counter()
    await socket.send(message.SerializeToString())
    await until(socket, "script_finished")
    return time.perf_counter() - started


def _processor_seconds(process: int) -> float:
    """Return the processor time that a process has used, all its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(process: int) -> float:
    """Return the memory that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def _first_visit(address: str, page: str) -> float:
    """Arrive on a page, and return the seconds until it has run."""
    started = time.perf_counter()
    async with socket_of(address) as socket:
        await ask(socket, page, "a first visit")
    return time.perf_counter() - started


async def _costs(address: str, process: int) -> dict[str, float]:
    """Return the milliseconds of the server's processor that a first visit of each page takes."""
    found = {}
    for page in ICONS:
        for _ in range(3):  # what all visitors share is there
            await _first_visit(address, page)
        before = _processor_seconds(process)
        for _ in range(FIRST_VISITS):
            await _first_visit(address, page)
        found[page] = 1e3 * (_processor_seconds(process) - before) / FIRST_VISITS
    return found


async def _fetch(address: str, path: str) -> None:
    """Fetch a file over a connection of its own."""
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n".encode())
    await reader.read()
    writer.close()


async def _crowd(address: str, page: str) -> tuple[list[float], list[float], int]:
    """Let a crowd arrive, each over new connections, and change its text every ten seconds afterwards.

    Returns:
        How long each waited for the page, and for each change, in seconds; how many lost their connection.
    """
    changes: list[float] = []
    end = time.perf_counter() + 2 * CROWD_SECONDS + THINK_SECONDS

    async def arrive(number: int) -> float:
        random_of = random.Random(number)
        await asyncio.sleep(random_of.random() * CROWD_SECONDS)
        started = time.perf_counter()
        for path in ("/", "/_stcore/health", "/_stcore/host-config"):
            await _fetch(address, path)
        async with socket_of(address) as socket:
            await ask(socket, page, "a first visit")
            waited = time.perf_counter() - started
            while time.perf_counter() + THINK_SECONDS < end:
                await asyncio.sleep(THINK_SECONDS)
                changes.append(await ask(socket, page, " ".join(random_of.choices(WORDS, k=12))))
        return waited

    found = await asyncio.gather(*(arrive(number) for number in range(CROWD)), return_exceptions=True)
    waits = [wait for wait in found if isinstance(wait, float)]
    return waits, changes, len(found) - len(waits)


def crowds(address: str, plain: str) -> bool:
    """Print how long a crowd waits here and on a plain page, one after the other; return whether the bounds hold."""
    who, good, slowest = f"{CROWD} arrive within {CROWD_SECONDS:g} s", True, {}
    for name, (where, page) in {"a plain page": (plain, ""), PAGE: (address, PAGE)}.items():
        waits, changes, lost = asyncio.run(_crowd(where, page))
        slowest[name] = max(waits)
        middle = f"{statistics.median(waits):.2f} s, slowest {max(waits):.2f} s"
        print(f"{who} on {name}: median {middle}; changes: slowest {max(changes):.2f} s; {lost} lost")
        good &= lost == 0
    print(f"the slowest of {PAGE} waits {slowest[PAGE] / slowest['a plain page']:.1f} times as long as on a plain page")
    return good & _ok(f"{who}: slowest", slowest[PAGE], MOST_WAIT_SECONDS, "s")


async def _idle(address: str, process: int) -> float:
    """Return the megabytes that the server grows by with many people who have arrived and do nothing."""
    await _first_visit(address, PAGE)
    before = memory_mb(process)
    async with AsyncExitStack() as there:
        for _ in range(IDLE):
            await ask(await there.enter_async_context(socket_of(address)), PAGE, "idle")
        return memory_mb(process) - before


def _ok(what: str, value: float, bound: float, unit: str) -> bool:
    print(f"{what:44} {value:8.1f} <= {bound:g} {unit} {'ok' if value <= bound else 'MISSED'}")
    return value <= bound


def arrivals(address: str, process: int, plain: str) -> bool:
    """Print what arrivals cost, beside a plain page; return whether every bound holds."""
    costs = asyncio.run(_costs(address, process))
    for page, milliseconds in costs.items():
        print(f"a first visit of {page:27} {milliseconds:8.1f} ms of the server's processor, its analysis included")
    good = _ok(f"a first visit of {PAGE}", costs[PAGE], MOST_CPU_MS, "ms of the processor")
    good &= crowds(address, plain)
    return good & _ok(f"{IDLE} idle connections", asyncio.run(_idle(address, process)), MOST_IDLE_MB, "MB")


async def _person(address: str, number: int, begin: float, end: float, waits: list[float]) -> None:
    random_of = random.Random(number)
    await asyncio.sleep(random_of.random() * THINK_SECONDS)
    async with socket_of(address) as socket:
        await ask(socket, PAGE, "a first visit")
        while time.perf_counter() < end:
            await asyncio.sleep(random_of.expovariate(1 / THINK_SECONDS))
            wait = await ask(socket, PAGE, " ".join(random_of.choices(WORDS, k=12)))
            if time.perf_counter() - wait > begin:
                waits.append(wait)


async def _visit(address: str, people: int, seconds: float) -> list[float]:
    waits: list[float] = []
    begin = time.perf_counter() + ARRIVAL_SECONDS  # by then everybody has arrived
    await asyncio.gather(*(_person(address, number, begin, begin + seconds, waits) for number in range(people)))
    return waits


async def _look_until_there(socket: ClientConnection, page: str, query: dict[str, str], end: float) -> bool:
    """Ask for a page, and look again as a browser does, until nothing on it looks again by itself, or the end."""
    message = BackMsg()
    message.rerun_script.query_string = urlencode(query)
    message.rerun_script.page_name = page
    await socket.send(message.SerializeToString())
    looks: dict[str, float] = {}
    while (left := end - time.perf_counter()) > 0:
        answer = ForwardMsg()
        try:
            answer.ParseFromString(await asyncio.wait_for(socket.recv(), min(left, *looks.values(), 60.0)))  # type: ignore[arg-type]
        except TimeoutError:
            for fragment in looks:
                look = BackMsg()
                look.rerun_script.query_string = urlencode(query)
                look.rerun_script.fragment_id = fragment
                look.rerun_script.is_auto_rerun = True
                await socket.send(look.SerializeToString())
            continue
        kind = answer.WhichOneof("type")
        if kind == "new_session" and not answer.metadata.run.fragment_ids:  # all of the page runs
            looks.clear()
        elif kind == "stop_auto_rerun":
            for fragment in answer.stop_auto_rerun.fragment_ids:
                looks.pop(fragment, None)
        elif kind == "auto_rerun":
            looks[answer.auto_rerun.fragment_id] = answer.auto_rerun.interval
        elif kind == "script_finished" and not looks:
            return True
    return False


async def _heavy_person(address: str, number: int, end: float, there: list[float]) -> None:
    """Ask for one heavy thing after the other; leave in the midst of the last."""
    for turn in itertools.count(number):
        page, query = HEAVY[turn % len(HEAVY)]
        of = {"number": 1_000 * number + turn, "seed": (2 * number + turn) % 20}
        begun = time.perf_counter()
        async with socket_of(address) as socket:  # each time by a link: what was chosen before stays otherwise
            asked = {name: value.format(**of) for name, value in query.items()}
            if not await _look_until_there(socket, page, asked, end):
                return
            there.append(time.perf_counter() - begun)
            await asyncio.sleep(LOOKED_AT_SECONDS)


async def _light_person(address: str, number: int, end: float, waits: list[float]) -> None:
    random_of = random.Random(number)
    async with socket_of(address) as socket:
        await ask(socket, PAGE, "a first visit")
        while time.perf_counter() < end:
            await asyncio.sleep(random_of.expovariate(1 / LIGHT_THINK_SECONDS))
            waits.append(await ask(socket, PAGE, " ".join(random_of.choices(WORDS, k=12))))


def _family_seconds(process: int) -> float:
    """Return the processor time of a process and of its children."""
    seconds = _processor_seconds(process)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == process:
                seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def _seconds_until_idle(process: int) -> float:
    """Return for how long a server goes on computing."""
    left = time.perf_counter()
    last = left
    while time.perf_counter() - last < 2.0:
        before = _family_seconds(process)
        time.sleep(0.5)
        if _family_seconds(process) - before > 0.1:  # a fifth of a core
            last = time.perf_counter()
    return last - left


def heavy(address: str, process: int, seconds: float) -> bool:
    """Print how long light changes take while ten ask for heavy things; return whether the bounds hold."""
    waits: list[float] = []
    there: list[float] = []

    async def all_of_them() -> None:
        end = time.perf_counter() + seconds
        await asyncio.gather(
            *(_heavy_person(address, number, end, there) for number in range(HEAVY_PEOPLE)),
            *(_light_person(address, number, end, waits) for number in range(LIGHT_PEOPLE)),
        )

    asyncio.run(all_of_them())
    after = _seconds_until_idle(process)
    slow = _report(f"{HEAVY_PEOPLE} ask for heavy things", waits)
    print(f"{len(there)} heavy answers came, after {statistics.median(there or [math.nan]):.1f} s at the median")
    good = _ok("the 95th percentile of light changes", 1e3 * slow, 1e3 * MOST_LIGHT_SECONDS, "ms")
    return good & _ok("computing after all have left", after, MOST_SECONDS_AFTER, "s")


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
    launcher.ask(store, "stop")
    while store.status().state not in ("stopped", "finished"):
        time.sleep(0.2)
    launcher.close()
    print(f"the run took {status.step} steps meanwhile and was {status.state}")
    return waits


def main() -> int:
    """Print arrivals and waits; exit status 1 where a bound is missed or the 95th percentile more than doubles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=["heavy", "crowds"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VITRINE_RUNS"] = folder
        with started(Path(folder) / "log") as (address, process):
            if options.only == "heavy":
                return 0 if heavy(address, process, options.seconds) else 1
            (Path(folder) / "plain.py").write_text(PLAIN)
            command = [sys.executable, "-m", "streamlit", "run", f"{folder}/plain.py"]
            with answering(command, Path(folder) / "plain.log") as (plain, _):
                if options.only == "crowds":
                    return 0 if crowds(address, plain) else 1
                good = arrivals(address, process, plain)
            good &= heavy(address, process, options.seconds)

            def visit() -> list[float]:
                return asyncio.run(_visit(address, options.people, options.seconds))

            quiet = _report("nobody trains", visit())
            busy = _report("a run trains", while_training(Path(folder), visit))
    print(f"95th percentile: {busy / quiet:.2f} <= {MOST_GROWTH} {'ok' if busy <= MOST_GROWTH * quiet else 'MISSED'}")
    return 0 if good and busy <= MOST_GROWTH * quiet else 1


if __name__ == "__main__":
    sys.exit(main())
