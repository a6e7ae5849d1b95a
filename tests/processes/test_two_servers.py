"""Two processes of one machine: what a visitor makes at one is there at the other, to watch, rename and delete."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pages.language import words
from tests.helpers.browser import started
from tests.helpers.bundles import zipped
from tests.helpers.engine import small_bundle
from tests.helpers.pages import finished
from tests.helpers.tiny_runs import wait_for
from tests.helpers.visitor import Visitor, socket_of
from transformer_core.bundle import save
from transformer_core.training.runs.run_list import RunList

pytestmark = pytest.mark.nightly
EN = words("en")
QUICK = {"source": "sentences", "examples": "640", "epochs": "60", "d_model": "32"}


class Pair:
    """Two servers with one folder of what people make, and a browser that is known at both.

    Args:
        addresses: of the servers.
        folder: of runs, opened models, rooms and lectures.
    """

    def __init__(self, addresses: list[str], folder: Path) -> None:
        self.addresses, self.folder = addresses, folder
        with urllib.request.urlopen(addresses[0], timeout=60) as answer:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]

    def asked(self, number: int, path: str, **body: Any) -> Any:
        """Ask a server; with a body, which is sent as JSON, by POST."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self.addresses[number]}{path}", data=data, headers={"Cookie": self.cookie})
        return urllib.request.urlopen(request, timeout=60)

    def get(self, number: int, path: str, **body: Any) -> bytes:
        """Return a server's answer."""
        with self.asked(number, path, **body) as answer:
            return answer.read()

    def json(self, number: int, path: str, **body: Any) -> dict[str, Any]:
        """Return a server's answer in JSON."""
        return json.loads(self.get(number, path, **body))

    @asynccontextmanager
    async def visitor(self, number: int) -> AsyncIterator[Visitor]:
        """Open a session of the browser at a server."""
        async with socket_of(self.addresses[number], cookie=self.cookie) as socket:
            yield Visitor(socket)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers whose visitors are told apart."""
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("VITRINE_HOSTS", "localhost")
        for name in ("RUNS", "OPENED", "ROOMS", "OWN_LECTURES", "KEY"):
            patch.setenv(f"VITRINE_{name}", str(folder / name.lower()))
        yield Pair([stack.enter_context(started(folder / f"log{number}"))[0] for number in range(2)], folder)


def test_a_run_of_one_process_is_watched_renamed_and_deleted_at_the_other(pair: Pair) -> None:
    async def go() -> None:
        async with pair.visitor(0) as first, pair.visitor(1) as second:
            await first.open("train", **QUICK)
            await first.set(EN["train.start"])
            run = first.query["run"][0]
            runs = RunList(pair.folder / "runs")
            await asyncio.to_thread(wait_for, lambda: runs.open(run).status().step > 2)
            for number in range(2):
                live = await asyncio.to_thread(pair.json, number, "/runs/underway")
                assert [(one["id"], one["state"]) for one in live["live"]] == [(run, "running")]
            await second.open("train", run=run, runs_open="on")
            await second.set(EN["run.stop"])
            await asyncio.to_thread(wait_for, lambda: runs.open(run).status().state == "stopped")
            films = [await asyncio.to_thread(pair.get, number, f"/film/{run}") for number in range(2)]
            assert films[0] == films[1] != b""
            await second.open("train", run=run, runs_open="on")
            await second.set(f"actions {run}")
            await second.set(f"name {run}", "called at the second")
            await first.open("train", run=run)
            assert "called at the second" in first.text()
            await second.set(f"sure {run}")
            await second.set(f"delete {run}")
            await first.open("train", run=run)
            assert EN["run.gone"].format(run=run) in first.text()
            await asyncio.to_thread(wait_for, lambda: pair.json(0, "/runs/underway")["live"] == [])

    finished(go())


def test_a_model_brought_to_one_process_is_there_at_the_other_until_it_is_removed_there(
    pair: Pair, tmp_path: Path
) -> None:
    async def go() -> None:
        async with pair.visitor(0) as first, pair.visitor(1) as second:
            for d_ff in (16, 24):  # the second time the name means another model
                bundle, name = small_bundle(d_ff=d_ff), "brought"
                save(bundle, tmp_path / str(d_ff))
                packed = zipped({path.name: path.read_bytes() for path in (tmp_path / str(d_ff)).iterdir()})
                await first.open("my_model", my_model_from="zip")
                await first.bring(pair.addresses[0], f"{name}.zip", packed.getvalue(), Cookie=pair.cookie)
                await first.set(EN["my_model.open"])
                assert first.query["model"] == [name]
                await second.open("attention")
                assert f'options: "{name}"' in second.text()
                await second.open("my_model", model=name)
                assert f"{sum(one.numel() for one in bundle.model.parameters()):,}" in second.text()
                await second.set(EN["my_model.sure"])
                await second.set(EN["my_model.remove"].format(name=name))
                await first.open("attention")
                assert f'options: "{name}"' not in first.text()

    finished(go())


def test_a_lecture_copied_at_one_process_is_edited_and_deleted_at_the_other(pair: Pair) -> None:
    async def go() -> None:
        async with pair.visitor(0) as first, pair.visitor(1) as second:
            await first.open("lectures")
            await first.set("copy twelve_scenes")
            name = next(path.stem for path in pair.folder.rglob("own_lectures/*/*.md"))
            await second.open("lectures", **{f"edit_{name}": "on"})
            text = next(pair.folder.rglob("own_lectures/*/*.md")).read_text()
            await second.set(EN["lectures.text"], text.replace("# ", "# Edited ", 1))
            await second.set(EN["lectures.save"])
            await first.open("lectures")
            assert "Edited" in first.text()
            await second.set(EN["lectures.sure"])
            await second.set(EN["lectures.delete"])
            await first.open("lectures")
            assert "Edited" not in first.text()

    finished(go())


def test_phones_of_a_room_at_both_processes_are_counted_together_and_hear_its_steps_and_its_end(pair: Pair) -> None:
    def heard(number: int, path: str, **body: Any) -> Iterator[dict[str, Any]]:
        with pair.asked(number, path, **body) as answer:
            yield from (json.loads(line.partition(b"data: ")[2]) for line in answer if line.startswith(b"data: "))

    room = pair.json(0, "/room/open", lecture="twelve_scenes", scene=1)
    code, secret = room["code"], room["secret"]
    phones = [heard(number, f"/room/{code}/events") for number in range(2)]
    assert [next(phone)["number"] for phone in phones] == [1, 1]
    lecturer = heard(0, f"/room/{code}/lecturer", secret=secret)
    assert next(found for found in lecturer if found["phones"] == 2)
    pair.json(1, f"/room/{code}/step", secret=secret, scene=2, stage="asked")
    for phone in phones:
        assert next(found for found in phone if found.get("number") == 2)
    pair.json(1, f"/room/{code}/close", secret=secret)
    for phone in phones:
        assert next(found for found in phone if found.get("closed"))
