"""A lecture hall: phones that join a room, follow its scenes and answer, while the lecturer's page is in use.

Every phone is a stream of its own and answers over connections of its own, as browsers do. Then all do their parts in
scenes in which the class is the experiment, and a tenth of them sends everything twice. A fifth of the phones is cut
off and comes back, in either; then the server is killed and started again with the same file of rooms.
Run: python -m tests.benchmarks.hall [--phones N]
"""

import argparse
import asyncio
import json
import math
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pages.hall.each.kinds import OF_KIND
from pages.hall.lectures import Lecture, lectures
from tests.benchmarks.visitors import ask, memory_mb
from tests.helpers.browser import started
from tests.helpers.visitor import socket_of

LECTURE, CLASS = "twelve_scenes", "you_are_the_model"
SAID = {
    "guess": ["the", 0.5],
    "cut": 0.4,
    "label": "positive",
    "vector": [0.1, 0.2],
    "train": 0.6,
}  # a draw says nothing
MOST_ROUNDS = 2  # of each part
JOIN_SECONDS, ANSWER_SECONDS, SCENE_SECONDS = 30.0, 5.0, 4.0
PART_SECONDS, LATE_SECONDS = 0.3, 60
QUESTIONS = 6
MOST_SECONDS, MOST_CHANGE_SECONDS, MOST_MB, MOST_PAGE_KB = 0.5, 0.25, 100.0, 60.0
Headers = dict[str, str]


async def _request(address: str, method: str, path: str, body: Any = None, cookie: str = "") -> tuple[Headers, bytes]:
    """Send a request on a connection of its own; return the headers and the body of the answer."""
    reader, writer = await _sent(address, method, path, body, cookie)
    try:
        headers = await _headers(reader)
        if "content-length" in headers:
            return headers, await reader.readexactly(int(headers["content-length"]))
        return headers, await reader.read()
    finally:
        writer.close()


async def _sent(
    address: str, method: str, path: str, body: Any, cookie: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 22)
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"Cookie: {cookie}"] if cookie else []
    writer.write("\r\n".join([*lines, "", ""]).encode() + data)
    await writer.drain()
    return reader, writer


async def _headers(reader: asyncio.StreamReader) -> Headers:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    return {"status": lines[0].split(" ")[1]} | {name.lower(): value.strip() for name, _, value in pairs}


async def _asked(address: str, path: str, body: Any, cookie: str = "") -> Any:
    """Post and return what came as JSON, asking again where the server wants to be asked later."""
    while True:
        headers, answer = await _request(address, "POST", path, body, cookie)
        if headers["status"] != "429":
            assert headers["status"] == "200", (path, headers["status"], answer[:200])
            return json.loads(answer)
        await asyncio.sleep(0.3 + 0.5 * random.random())


async def _until(true: Callable[[], bool]) -> None:
    """Wait for what may be late, so that it is not taken for lost."""
    for _ in range(LATE_SECONDS):
        if true():
            return
        await asyncio.sleep(1.0)


@dataclass
class Listener:
    """A stream of states, and when each came.

    Args:
        came: of each message that was another one than before, the time and what it said.
    """

    path: str
    body: Any = None
    cookie: str = ""
    came: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    writer: asyncio.StreamWriter | None = None

    async def listen(self, address: str) -> None:
        """Keep what comes until the stream ends."""
        method = "GET" if self.body is None else "POST"
        reader, self.writer = await _sent(address, method, self.path, self.body, self.cookie)
        headers = await _headers(reader)
        assert headers["status"] == "200", headers
        text = b""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while part := await reader.read(1 << 16):
                text += part
                *whole, text = text.split(b"\n\n")
                for event in whole:
                    _, found, data = event.partition(b"data: ")
                    if found:
                        self.came.append((time.perf_counter(), json.loads(data)))

    def cut(self) -> None:
        """Break the connection."""
        if self.writer is not None:
            self.writer.transport.abort()

    def first(self, since: float, scene: int) -> float | None:
        """Return when a scene was first heard of, after a moment."""
        return next((at for at, state in self.came if at >= since and state.get("number") == scene), None)


@dataclass
class Hall:
    """A room and its phones, and what was measured."""

    address: str
    code: str
    secret: str
    phones: list[Listener]
    lecturer: Listener
    steps: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    lost: int = 0
    twice: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def listen(self, who: Listener) -> None:
        """Let somebody listen."""
        task = asyncio.create_task(who.listen(self.address))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def knows_of(self, count: int) -> bool:
        """Tell whether the lecturer has heard of so many phones."""
        return bool(self.lecturer.came) and self.lecturer.came[-1][1]["phones"] == count

    async def step(self, scene: int, stage: str) -> None:
        """Step, and note after how long each phone knew."""
        before = time.perf_counter()
        await _asked(self.address, f"/room/{self.code}/step", {"secret": self.secret, "scene": scene, "stage": stage})
        if stage != "asked":
            return
        await asyncio.sleep(SCENE_SECONDS)
        await _until(lambda: all(phone.first(before, scene) for phone in self.phones))
        known = [phone.first(before, scene) for phone in self.phones]
        self.lost += known.count(None)
        self.steps += [at - before for at in known if at is not None]

    async def answer(self, scene: int, options: list[str]) -> None:
        """Let all phones answer within some seconds; note after how long the lecturer saw as many."""
        sent: list[float] = []

        async def one(number: int, phone: Listener) -> None:
            await asyncio.sleep(random.Random(number * 31 + scene).random() * ANSWER_SECONDS)
            sent.append(time.perf_counter())
            body = {"scene": scene, "said": options[number % len(options)]}
            await _asked(self.address, f"/room/{self.code}/answer", body, phone.cookie)

        await asyncio.gather(*(one(number, phone) for number, phone in enumerate(self.phones)))
        await asyncio.sleep(1.0)
        seen = [(at, state["answers"]) for at, state in self.lecturer.came if state.get("scene") == scene]
        for place, at in enumerate(sent, 1):
            when = next((then for then, answers in seen if answers >= place), None)
            self.lost += when is None
            self.answers += [] if when is None else [max(0.0, when - at)]
        self.twice += max(0, seen[-1][1] - len(self.phones))

    async def give(self, scene: int, said: Any, rounds: int) -> None:
        """Let all phones do their part within some seconds a round; note after how long the lecturer saw as many."""
        sent: list[float] = []

        async def one(number: int, phone: Listener) -> None:
            chance, ask = random.Random(number * 37 + scene), f"/room/{self.code}"
            while (known := phone.came[-1][1])["number"] != scene or "pending" in known["class"]:
                await asyncio.sleep(0.1)  # it is being computed
            await asyncio.sleep(chance.random() * PART_SECONDS)
            while "lines" not in await _asked(self.address, f"{ask}/part", {"scene": scene}, phone.cookie):
                await asyncio.sleep(1.0)
            for place in range(rounds):
                await asyncio.sleep(chance.random() * ANSWER_SECONDS)
                sent.append(time.perf_counter())
                body = {"scene": scene, "round": place, "said": said}
                for _ in range(2 if number % 10 == 0 else 1):
                    part = await _asked(self.address, f"{ask}/give", body, phone.cookie)
                    self.lost += part.get("round") != place + 1

        cut = self.phones[: len(self.phones) // 5]
        all_of_them = asyncio.gather(*(one(number, phone) for number, phone in enumerate(self.phones)))
        await asyncio.sleep(ANSWER_SECONDS / 2)
        for phone in cut:
            phone.cut()
        await asyncio.sleep(0.5)
        for phone in cut:
            self.listen(phone)
        await all_of_them
        await _until(lambda: self.lecturer.came[-1][1]["answers"] >= rounds * len(self.phones))
        await asyncio.sleep(1.0)
        seen = [(at, state["answers"]) for at, state in self.lecturer.came if state.get("scene") == scene]
        for place, at in enumerate(sorted(sent), 1):
            when = next((then for then, answers in seen if answers >= place), None)
            self.lost += when is None
            self.answers += [] if when is None else [max(0.0, when - at)]
        self.twice += max(0, seen[-1][1] - rounds * len(self.phones))


async def _join(address: str, code: str, count: int) -> tuple[list[Listener], float]:
    """Let phones open the page within half a minute; return them and how large the page is, in kB."""
    sizes: list[int] = []

    async def one(number: int) -> Listener:
        await asyncio.sleep(random.Random(number).random() * JOIN_SECONDS)
        headers, body = await _request(address, "GET", f"/room/{code}")
        if not sizes:
            files = [part.split('"')[0] for part in body.decode().split("/hall/files/")[1:]]
            names = {f"/hall/files/{name}" for name in files}
            folder = next(iter(names)).rpartition("/")[0]
            imported = ("nodes.js", "kit.js", "room.js", "figure.js", "part.js", "figure.css", "part.css")
            names |= {f"{folder}/{name}" for name in imported}
            sizes.append(len(body) + sum([len((await _request(address, "GET", name))[1]) for name in names]))
        return Listener(f"/room/{code}/events", cookie=headers["set-cookie"].split(";")[0])

    phones = await asyncio.gather(*map(one, range(count)))
    return list(phones), sizes[0] / 1e3


async def _lecturers_page(address: str, times: list[float]) -> None:
    """Change the text on the lecturer's page every second."""
    async with socket_of(address) as socket:
        number = 0
        while True:
            number += 1
            times.append(await ask(socket, "attention", f"A film of {number} slow scenes"))
            await asyncio.sleep(1.0)


def told(what: str, value: float, bound: float, unit: str) -> bool:
    """Print a figure beside its bound; tell whether it holds."""
    print(f"{what:60} {value:8.2f} <= {bound:g} {unit} {'ok' if value <= bound else 'MISSED'}", flush=True)
    return value <= bound


def late(times: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(times)[max(0, math.ceil(0.95 * len(times)) - 1)]


async def _lecture(address: str, process: int, count: int, lecture: Lecture) -> tuple[Hall, bool]:
    warm: list[float] = []
    using = asyncio.create_task(_lecturers_page(address, warm))
    await asyncio.sleep(8)
    memory = memory_mb(process)
    headers, _ = await _request(address, "GET", f"/?lecture={LECTURE}")
    cookie = headers["set-cookie"].split(";")[0]
    made = await _asked(address, "/room/open", {"lecture": LECTURE, "language": "en", "scene": 2}, cookie)
    code, secret = made["code"], made["secret"]
    phones, kilobytes = await _join(address, code, count)
    hall = Hall(address, code, secret, phones, Listener(f"/room/{code}/lecturer", {"secret": secret}, cookie))
    for who in (hall.lecturer, *phones):
        hall.listen(who)
    await _until(lambda: hall.knows_of(count))
    warm.clear()
    joined = hall.lecturer.came[-1][1]["phones"]
    hall.lost += count - joined
    asked = 0
    for number, scene in enumerate(lecture.scenes, 1):
        await hall.step(number, "asked")
        if scene.question is None or asked == QUESTIONS:
            continue
        asked += 1
        if asked == 3:
            for phone in phones[: count // 5]:
                phone.cut()
            await asyncio.sleep(0.5)
            for phone in phones[: count // 5]:
                hall.listen(phone)
        await hall.answer(number, list(scene.question.options))
        for stage in ("shown", "measured"):
            await hall.step(number, stage)
    using.cancel()
    fine = told("the phone's page", kilobytes, MOST_PAGE_KB, "kB")
    fine &= told(f"scene to {count} phones, 95th percentile", late(hall.steps), MOST_SECONDS, "s")
    fine &= told("answer to the lecturer, 95th percentile", late(hall.answers), MOST_SECONDS, "s")
    print(f"medians: {statistics.median(hall.steps):.2f} s, {statistics.median(hall.answers):.2f} s")
    fine &= told("a change on the lecturer's page, 95th percentile", late(warm), MOST_CHANGE_SECONDS, "s")
    fine &= told("memory of the server, grown by", memory_mb(process) - memory, MOST_MB, "MB")
    return hall, fine


async def _class(hall: Hall, cookie: str, lecture: Lecture) -> tuple[Hall, int, bool]:
    """Let the same phones do their parts in a room of its own; return it, and how much the last scene was given."""
    made = await _asked(hall.address, "/room/open", {"lecture": CLASS, "language": "en", "scene": 2}, cookie)
    code, secret = made["code"], made["secret"]
    phones = [Listener(f"/room/{code}/events", cookie=phone.cookie) for phone in hall.phones]
    own = Hall(hall.address, code, secret, phones, Listener(f"/room/{code}/lecturer", {"secret": secret}, cookie))
    for who in (own.lecturer, *phones):
        own.listen(who)
    await _until(lambda: own.knows_of(len(phones)))
    given, fine = 0, True
    for number, scene in enumerate(lecture.scenes, 1):
        assert scene.each is not None
        await own.step(number, "asked")
        rounds = min(MOST_ROUNDS, OF_KIND[scene.each.kind].rounds(scene.each))
        before = len(own.answers)
        await own.give(number, SAID.get(scene.each.kind), rounds)
        given = rounds * len(phones)
        what = f"{scene.each.kind}: {given} given, to the lecturer, 95th percentile"
        fine &= told(what, late(own.answers[before:]), MOST_SECONDS, "s")
    fine &= told(f"class scene to {len(phones)} phones, 95th percentile", late(own.steps), MOST_SECONDS, "s")
    return own, given, fine


async def _after_a_kill(hall: Hall, address: str, scenes: int) -> None:
    """Let all come back to a server that was killed, where they were."""
    hall.address = address
    for who in (hall.lecturer, *hall.phones):
        hall.listen(who)
    await asyncio.sleep(5)
    hall.lost += sum(phone.came[-1][1].get("number") != scenes for phone in hall.phones)


def main() -> int:
    """Print what was measured; exit status 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phones", type=int, default=500)
    count = parser.parse_args().phones
    lecture, parts = (lectures("en")[name] for name in (LECTURE, CLASS))
    assert isinstance(lecture, Lecture)
    assert isinstance(parts, Lecture)

    async def both(folder: Path) -> bool:
        with started(folder / "log") as (address, process):
            hall, fine = await _lecture(address, process, count, lecture)
            of_class, given, well = await _class(hall, hall.lecturer.cookie, parts)
            os.kill(process, signal.SIGKILL)
            await asyncio.gather(*hall.tasks, *of_class.tasks, return_exceptions=True)
        with started(folder / "log2") as (address, _):
            await _after_a_kill(of_class, address, len(parts.scenes))
            counted = next(state for _, state in reversed(of_class.lecturer.came) if not state.get("closed"))["answers"]
            print(f"parts of the last scene after the kill: {counted} of {given}")
            of_class.lost += max(0, given - counted)
            of_class.twice += max(0, counted - given)
            await of_class.step(1, "asked")
            for task in list(of_class.tasks):
                task.cancel()
            await _after_a_kill(hall, address, len(lecture.scenes))
            await hall.step(1, "asked")
            state = hall.lecturer.came[-1][1]
            hall.twice += state["answers"] not in (0, count)
            for task in list(hall.tasks):
                task.cancel()
        lost, twice = hall.lost + of_class.lost, hall.twice + of_class.twice
        fine &= told("scenes, answers and parts lost, a kill and cuts of a fifth included", lost, 0, "")
        return fine & well & told("answers and parts counted twice", twice, 0, "")

    with tempfile.TemporaryDirectory() as folder:
        os.environ["VITRINE_ROOMS"] = str(Path(folder) / "rooms.sqlite3")
        return 0 if asyncio.run(both(Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
