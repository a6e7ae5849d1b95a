"""Rooms as they are asked for: only the lecturer's secret steps, and whoever guesses a code or a secret waits."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cachetools import TTLCache
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient

from app import LIVE
from pages.hall import listening, parts
from pages.hall import room_routes as module
from pages.hall.alone import alone_routes
from pages.hall.projector import projector_routes
from pages.kit.live import live_routes
from pages.language import words
from pages.running_sign import running_routes
from pages.serving.owners import owner_of, signed
from tests.helpers.engine import small_bundle
from tests.helpers.pages import finished
from tests.pages.kit.test_lectures import HEAD, SCENE
from transformer_core.bundle import save


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
    monkeypatch.setattr(module, "before_serving", lambda look: None)
    monkeypatch.setattr(module, "before_stopping", lambda end: None)
    monkeypatch.setattr(parts, "_ahead", SimpleNamespace(submit=lambda act, *about: act(*about)))
    module.rooms.cache_clear()
    yield TestClient(Starlette(routes=module.room_routes()))
    module.rooms.cache_clear()


def test_only_the_lecturer_steps_and_a_guessed_secret_is_answered_slowly(
    client: TestClient, waited: list[float]
) -> None:
    opened = client.post("/room/open", json={"lecture": "twelve_scenes", "scene": 8}).json()
    code, step = opened["code"], {"scene": 1, "stage": "asked"}
    for path in ("step", "lecturer", "answers", "close", "pick", "enter", "home"):
        waited.clear()
        assert client.post(f"/room/{code}/{path}", json={"secret": "guessed", **step}).status_code == 404
        assert waited == [module.SECONDS_OF_A_WRONG_CODE], path
    state = module.rooms().state(code)
    assert state is not None
    assert (state.scene, state.stage) == (8, "asked")
    waited.clear()
    assert client.post(f"/room/{code}/step", json={"secret": opened["secret"], **step}).status_code == 200
    state = module.rooms().state(code)
    assert state is not None
    assert state.scene == 1
    assert waited == []


def test_a_wrong_code_is_answered_slowly(client: TestClient, waited: list[float]) -> None:
    assert client.get("/room/AAAA/events").status_code == 404
    assert waited == [module.SECONDS_OF_A_WRONG_CODE]
    assert module.SECONDS_OF_A_WRONG_CODE >= 1


def test_what_opens_no_room_is_refused(client: TestClient) -> None:
    odd = [(b"[1]", 400), (b"{", 400), (b"x" * 10_000, 413), (b'{"lecture": "none"}', 404), (b"[" * 8_000, 400)]
    odd += [(b'{"lecture": "\\ud800"}', 400), (b'{"lecture": ["a"], "language": {}, "scene": {}}', 404)]
    for body, status in odd:
        assert client.post("/room/open", content=body).status_code == status


def test_a_right_code_passes_at_once_while_hundreds_guess(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    code = client.post("/room/open", json={"lecture": "twelve_scenes"}).json()["code"]

    def let_in(code: str) -> asyncio.Task[str]:
        return asyncio.create_task(module._let_in(Request({"type": "http", "path_params": {"code": code}})))

    async def ask() -> tuple[str, list[int]]:
        on = asyncio.Event()
        monkeypatch.setattr(module.asyncio, "sleep", lambda _: on.wait())
        monkeypatch.setattr(module, "_guessing", asyncio.Semaphore(module.WRONG_AT_ONCE))
        wrong = [let_in("AAAA") for _ in range(100)]
        while sum(one.done() for one in wrong) < 100 - module.WRONG_AT_ONCE:
            await asyncio.wait([one for one in wrong if not one.done()], return_when=asyncio.FIRST_COMPLETED)
        right = await let_in(code)
        on.set()
        refused = await asyncio.gather(*wrong, return_exceptions=True)
        return right, [error.status for error in refused if isinstance(error, module.RefusalError)]

    right, wrong = finished(ask())
    assert right == code
    assert sorted(wrong) == [404] * module.WRONG_AT_ONCE + [429] * (100 - module.WRONG_AT_ONCE)


def test_a_third_room_says_what_it_deletes_and_a_full_hall_gives_way(
    client: TestClient, on_a_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(key: str, **more: object) -> dict:
        headers = {"Cookie": f"vitrine={signed(key * 32)}"}
        return client.post("/room/open", json={"lecture": "twelve_scenes", "scene": 3, **more}, headers=headers).json()

    assert asked("")["error"] == words("en")["room.cookies"]
    first, second = asked("a")["code"], asked("a")["code"]
    state = module.rooms().state(first)
    assert state is not None
    module.rooms().answer(first, "phone", 3, next(iter(state.counts)))
    third = asked("a")
    assert (third["why"], third["error"]) == ("room.third", words("en")["room.third"].format(code=first, count=1))
    assert asked("a", language="zh")["error"] == words("zh")["room.third"].format(code=first, count=1)
    assert module.rooms().has(first)
    codes = [second, asked("a", instead=True)["code"]]
    assert not module.rooms().has(first)
    codes += [asked(key)["code"] for key in "bcdefg"]
    assert asked("h")["error"] == words("en")["room.address"].format(most=module.MOST_ROOMS_OF_AN_ADDRESS)
    monkeypatch.setattr(module, "MOST_ROOMS_OF_AN_ADDRESS", 100)
    monkeypatch.setattr(module.rooms(), "_most", len(codes))
    newest = asked("h")["code"]
    assert [module.rooms().has(code) for code in (*codes, newest)] == [False, *[True] * len(codes)]


def test_a_file_of_rooms_that_cannot_be_used_is_told_at_the_start_and_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "rooms.sqlite3").write_bytes(b"damaged" * 1_000)
    monkeypatch.setenv("VITRINE_ROOMS", str(tmp_path / "rooms.sqlite3"))
    monkeypatch.setattr(module, "before_serving", lambda look: look())
    monkeypatch.setattr(module, "before_stopping", lambda end: None)
    module.rooms.cache_clear()
    client = TestClient(Starlette(routes=module.room_routes()))
    assert "the file of the rooms, rooms.sqlite3, cannot be used" in caplog.text
    answer = client.post("/room/open", json={"lecture": "twelve_scenes"})
    assert (answer.status_code, answer.json()["error"]) == (503, words("en")["room.unusable"])


@pytest.mark.parametrize("by", ["", "{key}", "{signed}x", "{signed}"])
def test_without_a_key_with_a_made_up_one_and_with_anothers_nothing_that_is_not_theirs_is_told(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_a_network: None, waited: list[float]
) -> None:
    by = by.format(key="k" * 32, signed=signed("k" * 32))
    written = HEAD + SCENE
    for owner in ("home", owner_of("a" * 32)):
        (tmp_path / "lectures" / owner).mkdir(parents=True)
        (tmp_path / "lectures" / owner / "secret.md").write_text(written)
    shelf = tmp_path / "models"
    for owner in ("", owner_of("a" * 32)):
        folder = shelf / f"of_{owner[:4] or 'home'}"
        save(small_bundle(), folder)
        note = {"origin": "zip", "asked": "x", "folder": "", "fetched": False, "left_out": [], "owner": owner}
        (folder / "opened.json").write_text(json.dumps(note))
    for name, value in (("OWN_LECTURES", "lectures"), ("OPENED", "models"), ("ROOMS", "rooms"), ("RUNS", "runs")):
        monkeypatch.setenv(f"VITRINE_{name}", str(tmp_path / value))
    monkeypatch.setattr(module, "before_serving", lambda look: None)
    monkeypatch.setattr(module, "before_stopping", lambda end: None)
    module.rooms.cache_clear()
    routes = [*live_routes(LIVE), *projector_routes(), *module.room_routes(), *running_routes()]
    client, headers = TestClient(Starlette(routes=routes)), {"Cookie": f"vitrine={by}"} if by else {}

    def asked(path: str, headers: dict[str, str], body: dict | None = None) -> tuple[int, str]:
        answer = client.get(path, headers=headers) if body is None else client.post(path, headers=headers, json=body)
        return answer.status_code, answer.text

    of_lecture = ("/?lecture=own.secret", "/hall/notes?lecture=own.secret", "/hall/measured?lecture=own.secret&scene=1")
    own = {"Cookie": f"vitrine={signed('a' * 32)}"}
    for path in of_lecture:
        assert asked(path, own)[0] == 200
        assert asked(path, headers)[0] == 404
    for name in (f"of_{owner_of('a' * 32)[:4]}", "of_home"):
        path = f"/live/attention/heads?model={name}&text=a+glass+box&lang=en"
        assert (asked(path, own)[0] == 200) is (name != "of_home")
        assert asked(path, headers)[0] == 204
    room = {"lecture": "own.secret", "language": "en"}
    assert asked("/room/open", own, room)[0] == 200
    assert asked("/room/open", headers, room)[0] == (404 if by == signed("k" * 32) else 403)
    (code, *_), *_ = module.rooms().all()
    for name in ("step", "pick", "close", "enter", "answers", "home", "lecturer"):
        status, said = asked(f"/room/{code}/{name}", headers, {"secret": "", "scene": 1, "stage": "asked"})
        assert (status, "For me" in said) == (404, False)
    assert asked("/runs/underway", headers) == (200, '{"live": [], "ended": null}')


def test_a_phone_answers_no_faster_than_a_person_and_a_crowd_no_faster_than_the_server(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, now = client.post("/room/open", json={"lecture": "twelve_scenes"}).json()["code"], [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(module, "_answered", TTLCache(2, 1.0, timer=lambda: now[0]))
    monkeypatch.setattr(module, "MOST_ANSWERS_A_SECOND", 2)

    def is_too_fast(phone: str, at: float) -> bool:
        now[0] = at
        headers = {"Cookie": f"vitrine={signed(phone * 32)}"}
        return client.post(f"/room/{code}/answer", json={"scene": 1}, headers=headers).status_code == 429

    just_before = module.SECONDS_BETWEEN_ANSWERS - 0.01
    assert [is_too_fast("a", at) for at in (0.0, just_before, module.SECONDS_BETWEEN_ANSWERS)] == [False, True, False]
    assert [is_too_fast(*one) for one in (("b", 0.5), ("c", 0.9), ("c", 1.29), ("c", 1.3))] == [
        False,
        True,
        True,
        False,
    ]
    assert len(module._answered) <= 2


def test_a_phone_keeps_its_part_and_what_it_gave_whatever_it_sends_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_ANSWERS", 0.0)
    opened = client.post("/room/open", json={"lecture": "you_are_the_model", "scene": 3}).json()
    code, phone = opened["code"], {"Cookie": f"vitrine={signed('p' * 32)}"}

    def asked(path: str, headers: dict[str, str] = phone, **body: object) -> tuple[int, dict]:
        answer = client.post(f"/room/{code}/{path}", json={"scene": 3, **body}, headers=headers)
        return answer.status_code, answer.json()

    status, part = asked("part")
    assert (status, part["round"], part["rounds"], part["ask"]["type"]) == (200, 0, 10, "text")
    first = asked("give", round=0, said=["They", 0.9])
    assert (first[1]["round"], len(first[1]["results"])) == (1, 1)
    assert asked("give", round=0, said=["He", 0.1])[1] == first[1] == asked("part")[1]
    for wrong in ({"round": 2, "said": ["a", 0.5]}, {"round": 99}, {"round": True}, {"said": ["a", 0.5]}, {"round": 1}):
        assert asked("give", **wrong)[0] == 400, wrong
    for said in ("<b>", ["a" * 25, 0.5], ["a", 7], {"a": []}, ["a\nb", 0.5]):
        assert asked("give", round=1, said=said)[0] == 400, said
    assert asked("part", headers={})[0] == 403
    assert asked("part", scene=2)[0] == 409
    assert asked("part", headers={"Cookie": f"vitrine={signed('q' * 32)}"})[1]["round"] == 0
    state = module.rooms().state(code)
    assert state is not None
    assert len(state.parts) == 1
    client.post(f"/room/{code}/step", json={"secret": opened["secret"], "scene": 3, "stage": "shown"})
    assert asked("give", round=1, said=["saw", 0.9])[0] == 409
    assert asked("part")[1]["round"] == 1


def test_phones_hear_of_a_scene_at_once_and_of_counts_no_oftener_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [listening.Told(b"scene 1, 0", b"0", (1,))]
    monkeypatch.setattr(listening, "_told", lambda code, phones: told[-1])
    monkeypatch.setattr(listening, "SECONDS_BETWEEN_COUNTS_OF_PHONES", 3_600.0)

    async def listen() -> None:
        live = listening.Live("ABCD")
        phone, lecturer = live.listen("phone"), live.listen("lecturer")
        assert (await anext(phone), await anext(lecturer)) == (b"scene 1, 0", b"0")
        for count in (b"5", b"6"):
            told.append(listening.Told(b"scene 1, " + count, count, (1,)))
            live.changed(at_once=False)
            assert await anext(lecturer) == count
            assert live.told is not None
            assert live.told.phone == b"scene 1, 0"
        told.append(listening.Told(b"scene 2, 0", b"0", (2,)))
        live.changed()
        assert (await anext(phone), await anext(lecturer)) == (b"scene 2, 0", b"0")
        live._phones_wait_until = 0.0
        told.append(listening.Told(b"scene 2, 9", b"9", (2,)))
        live.changed(at_once=False)
        assert await anext(phone) == b"scene 2, 9"
        live._teller.cancel()

    finished(listen())


def test_only_the_lecturer_moves_the_slider_and_only_within_its_bounds(client: TestClient, waited: list[float]) -> None:
    opened = client.post("/room/open", json={"lecture": "you_are_the_model", "scene": 1}).json()
    path, body = f"/room/{opened['code']}/slide", {"secret": opened["secret"], "scene": 1}
    assert client.post(path, json={**body, "secret": "guessed", "value": 2}).status_code == 404
    for value in (99, 0, "2", None, True, "1e9999"):
        assert client.post(path, json={**body, "value": value}).status_code == 400
    assert client.post(path, json={**body, "scene": 2, "value": 2}).status_code == 400
    assert client.post(path, json={**body, "value": 2}).status_code == 200
    state = module.rooms().state(opened["code"])
    assert state is not None
    assert state.slider == 2


def test_one_person_alone_has_the_part_without_a_room(client: TestClient) -> None:
    alone = TestClient(Starlette(routes=alone_routes()))
    link = "/hall/alone?lecture=you_are_the_model&scene=1&lang=en"
    page = alone.get(link)
    assert page.status_code == 200
    assert len(page.content) < 10_000
    first = alone.post(link, json={"seat": 4, "sent": [], "value": 0.1}).json()
    assert (first["part"]["round"], first["picture"]["people"]) == (0, 60)
    drawn = alone.post(link, json={"seat": 4, "sent": [None] * 5}).json()
    assert (drawn["part"]["ask"], drawn["picture"]["people"]) == (None, 61)
    for body in ({}, {"seat": -1, "sent": []}, {"seat": 1, "sent": "x"}, {"seat": 9_999, "sent": []}):
        assert alone.post(link, json=body).status_code == 400
    cut = link.replace("scene=1", "scene=3")
    assert alone.post(cut, json={"seat": 4, "sent": [{"a": 1}]}).status_code == 400
    for missing in ("lecture=none&scene=1", "lecture=you_are_the_model&scene=99", "lecture=twelve_scenes&scene=1"):
        assert alone.get(f"/hall/alone?{missing}").status_code == 404
