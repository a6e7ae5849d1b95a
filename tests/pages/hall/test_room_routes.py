"""Rooms as they are asked for: only the lecturer's secret steps, and whoever guesses a code or a secret waits."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pages.hall import room_routes as module


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that answers slept, which nobody sleeps here."""
    seconds, sleep = list[float](), asyncio.sleep

    async def noted(pause: float) -> None:
        seconds.append(pause)
        await sleep(0)

    monkeypatch.setattr(module.asyncio, "sleep", noted)
    return seconds


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: list[float]) -> Iterator[TestClient]:
    """A client of the routes alone, whose rooms are in a file of their own."""
    monkeypatch.setenv("VITRINE_ROOMS", str(tmp_path / "rooms.sqlite3"))
    monkeypatch.setattr(module, "before_stopping", lambda end: None)
    module._rooms.cache_clear()
    yield TestClient(Starlette(routes=module.room_routes()))
    module._rooms.cache_clear()


def test_only_the_lecturer_steps_and_a_guessed_secret_is_answered_slowly(
    client: TestClient, waited: list[float]
) -> None:
    opened = client.post("/room/open", json={"lecture": "twelve_scenes", "scene": 8}).json()
    code, step = opened["code"], {"scene": 1, "stage": "asked"}
    for path in ("step", "lecturer", "answers", "close", "pick", "enter", "home"):
        waited.clear()
        assert client.post(f"/room/{code}/{path}", json={"secret": "guessed", **step}).status_code == 404
        assert waited == [module.SECONDS_OF_A_WRONG_CODE], path
    state = module._rooms().state(code)
    assert state is not None
    assert (state.scene, state.stage) == (8, "asked")
    waited.clear()
    assert client.post(f"/room/{code}/step", json={"secret": opened["secret"], **step}).status_code == 200
    state = module._rooms().state(code)
    assert state is not None
    assert state.scene == 1
    assert waited == []


def test_a_wrong_code_is_answered_slowly(client: TestClient, waited: list[float]) -> None:
    assert client.get("/room/AAAA/events").status_code == 404
    assert waited == [module.SECONDS_OF_A_WRONG_CODE]
    assert module.SECONDS_OF_A_WRONG_CODE >= 1


def test_what_opens_no_room_is_refused(client: TestClient) -> None:
    for body, status in ((b"[1]", 400), (b"{", 400), (b"x" * 10_000, 413), (b'{"lecture": "none"}', 404)):
        assert client.post("/room/open", content=body).status_code == status
