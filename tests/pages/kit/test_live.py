"""Live figures: the route brings the very bytes of the page's run, and nothing where the page would say why."""

import asyncio
import json
import re
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import vl_convert
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState

from app import LIVE
from pages.attention import arcs
from pages.figures.forms import units_in
from pages.kit import component, live, matrix
from pages.kit.models import MORE_MODELS, forget_models
from pages.link import LIVE as ROUTED
from pages.link import linked
from pages.serving import turns
from pages.serving.owners import owner_in, signed
from pages.translation import translated
from tests.helpers import nightly_but
from tests.helpers.chats import TEMPLATES, chat_model
from tests.helpers.figures import unpack
from tests.helpers.live_cases import BOXES, CASES, MODELS, MOE, TEXT
from tests.helpers.pages import finished, run
from transformer_core.analysis.masks.codes import painted_code
from transformer_core.bundle import save


@pytest.fixture(scope="module")
def client() -> TestClient:
    """Return a client of the route alone."""
    return TestClient(Starlette(routes=live.live_routes(LIVE)))


def asked(page: str, part: str, query: dict[str, str]) -> dict[str, str]:
    """Return a link to a part of a page that names everything."""
    own = {"glass_open": "true"} if page in BOXES else {f"{page}_part": part}
    return {"lang": "en", "model": MODELS.get(page, "sentiment"), "text": TEXT, **own, **query}


def pictures_in(body: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header of an answer, and the bytes of each picture by its key."""
    (length,) = struct.unpack_from("<I", body)
    header = json.loads(body[4 : 4 + length])
    at, found = -(-(4 + length) // 8) * 8, {}
    for key, size in header["pictures"]:
        found[key] = body[at : at + size]
        at += size
    assert at == len(body)
    return header, found


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Return what pages mount as matrices from now on, by key."""
    found: dict[str, bytes] = {}
    mount: Callable[[str], Any] = component.registered

    def noted(name: str) -> Any:
        def mounting(**options: Any) -> Any:
            found[options["key"]] = options["data"]
            return mount(name)(**options)

        return mounting

    for module in (matrix, arcs):
        monkeypatch.setattr(module, "registered", noted)
    return found


def last_of_its_part(case: tuple[str, str, dict[str, str]]) -> bool:
    """Tell whether the gate runs a case: of every fourth live part the last one, which says more than the first."""
    parts = list(dict.fromkeys(other[:2] for other in CASES))
    return case[:2] in parts[::4] and case == [other for other in CASES if other[:2] == case[:2]][-1]


@pytest.mark.parametrize(("page", "part", "query"), nightly_but(CASES, last_of_its_part))
def test_the_route_and_the_page_bring_the_same_bytes_and_numbers(
    client: TestClient, mounted: dict[str, bytes], opened_odd: Callable, page: str, part: str, query: dict[str, str]
) -> None:
    link = asked(page, part, query)
    if link["model"] == MOE["model"]:
        opened_odd("gpt", "mixture")
    app = run(BOXES.get(page, page), **link)
    assert not app.exception
    answer = client.get(f"/live/{page}/{part}", params=link)
    assert answer.status_code == 200
    header, found = pictures_in(answer.content)
    assert found or header["drawings"] or header["verdicts"] or header["formulas"]
    for key, data in found.items():
        assert data.rstrip(b"\0") == mounted[key].rstrip(b"\0"), key
    charts = [element.proto for element in app.get("vega_lite_chart")]
    for event, rows in header["drawings"].items():
        (chart,) = (chart for chart in charts if json.dumps(event) in chart.spec)
        drawn = {data.name: pa.ipc.open_stream(data.data.data).read_all().to_pylist() for data in chart.datasets}
        placed = {name: [row | {"row": place} for place, row in enumerate(data)] for name, data in rows.items()}
        assert {name: drawn[name] for name in rows} == placed  # as live.js numbers them
        check_marks(chart.spec)
    shown = "".join(element.proto.body for element in app.get("html"))
    for name, nodes in header["lines"].items():
        (lines,) = re.findall(f'<div data-lines="{name}">(.*)</div>', shown)
        assert live.nodes_of(f"<div>{lines}</div>")[0][2 : 2 + len(nodes)] == nodes
    assert set(header["formulas"].values()) <= {element.value.strip("$\n") for element in app.latex}
    for name, verdict in header["verdicts"].items():
        assert live.Verdict(**verdict).html(name) in shown
    of_step = {f"one_step_{name}" for name in ("before", "after", "norm", "length")}
    assert set(header["numbers"]) <= {"masks_change", "masks_reach", "lab_ln", "lab_change", "lab_random", *of_step}
    for number in header["numbers"].values():
        assert f">{number['value']}</div>" in shown


def test_a_chat_model_is_asked_the_same_the_short_way(
    client: TestClient,
    mounted: dict[str, bytes],
    opened_odd: Callable,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    save(chat_model(TEMPLATES["gemma"]), tmp_path / "speaker")
    monkeypatch.setenv(MORE_MODELS, str(tmp_path))
    forget_models()
    link = {"model": "speaker", "text": "Why is the sky blue?", "chat": "on"}
    test_the_route_and_the_page_bring_the_same_bytes_and_numbers(client, mounted, opened_odd, "gpt", "next", link)
    app = run("gpt", **link, glass_open="true")
    followed = [
        json.loads(one.proto.json)["said"] for one in app.get("bidi_component") if str(one.key).startswith("live")
    ]
    assert [(said["text"], said["chat"]) for said in followed] == [
        (link["text"], "on")
    ] * 2  # of the part and the glass
    without = client.get("/live/gpt/next", params=asked("gpt", "next", link | {"chat": "off"}))
    assert without.content != client.get("/live/gpt/next", params=asked("gpt", "next", link)).content
    forget_models()


def check_marks(spec: str) -> None:
    """Check that a chart's marks stay when other rows come: none is stacked, and each is known by its row's place."""
    vega = vl_convert.vegalite_to_vega(spec)
    assert "stack" not in [one["type"] for data in vega["data"] for one in data.get("transform", ())]
    units = [json.loads(spec)]
    while units:
        unit = units.pop()
        units += units_in(unit)
        if "mark" in unit and unit["mark"]["type"] not in ("line", "area"):
            assert unit["encoding"]["key"] == {"field": "row"}


def test_a_long_translation_comes_word_by_word(
    client: TestClient, mounted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translated, "MOMENT", 0.0)
    for part in ("steps", "cross"):
        link = asked("translation", part, {"text": f"Two dogs and a cat play in the {part} near the house."})
        words, more = [], True
        while more:
            header, found = pictures_in(client.get(f"/live/translation/{part}", params=link).content)
            said, more = json.dumps(header["lines"]["translation"], ensure_ascii=False), header["more"]
            assert ("…" in said) is more
            words.append(said.count("tr-word") - more)
        assert len(words) > 2
        assert words == sorted(words)
        assert not run("translation", **link).exception
        for key, data in found.items():
            assert data.rstrip(b"\0") == mounted[key].rstrip(b"\0"), key


BROWSER, OTHER, THIRD = ((b"cookie", f"vitrine={signed(letter * 32)}".encode()) for letter in "abc")
NOBODY = (b"accept", b"*/*")
RERUN = BackMsg(rerun_script=ClientState(query_string="text=a")).SerializeToString()


def through(
    held: tuple[bytes, bytes] | None,
    *,
    by: tuple[bytes, bytes] = BROWSER,
    message: bytes = RERUN,
    let_go: bool = False,
) -> list[str]:
    """Return in which order a picture that is underway and a page's run are through.

    Args:
        held: the header of the picture's request; None where there is no picture.
        by: the header of the page's socket, over which the message comes.
        let_go: the picture comes once the run has looked; else only after the run.
    """
    order: list[str] = []

    async def follow() -> None:
        done = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await (done.wait() if scope["type"] == "http" else receive())
            order.append(scope["type"])

        async def receive() -> Message:
            return {"type": "websocket.receive", "bytes": message}

        async def send(message: Message) -> None:
            raise AssertionError(message)

        first = live.PicturesFirst(app)
        scope = {"type": "http", "path": "/live/attention/heads", "headers": [held]}
        picture = asyncio.create_task(first(scope, receive, send)) if held else None
        await asyncio.sleep(0)
        socket = {"type": "websocket", "path": "/_stcore/stream", "headers": [by]}
        run_of_page = asyncio.create_task(first(socket, receive, send))
        if let_go:
            await asyncio.sleep(3 * live.SECONDS_BETWEEN)
            done.set()
        await run_of_page
        done.set()
        if picture:
            await picture
        while first._underway:
            await asyncio.sleep(live.SECONDS_TO_PAINT)

    finished(follow())
    return order


def test_a_run_waits_for_pictures_of_the_same_browser_a_moment_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_SECONDS_HELD", 60.0)
    assert through(BROWSER, let_go=True) == ["http", "websocket"]
    run_first = ["websocket", "http"]
    assert through(OTHER) == run_first
    assert through(None) == ["websocket"]
    assert through(NOBODY, by=NOBODY) == run_first
    assert through(BROWSER, message=BackMsg(load_git_info=True).SerializeToString()) == run_first
    monkeypatch.setattr(live, "MOST_SECONDS_HELD", 0.0)
    assert through(BROWSER) == run_first


def test_one_who_asks_for_much_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate = list[str](), threading.Semaphore(0)

    def build(_: object) -> live.Live:
        link = linked()
        assert link is not None
        begun.append(link.owner)
        gate.acquire()
        return live.Live()

    monkeypatch.setattr(live, "linked_view", lambda: None)
    app = Starlette(routes=live.live_routes({("attention", "heads"): build}))

    async def ask(by: tuple[bytes, bytes], address: str) -> None:
        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            assert message.get("status", 200) == 200

        scope = {"type": "http", "method": "GET", "path": "/live/attention/heads", "query_string": b"", "headers": [by]}
        await app({**scope, "client": (address, 1)}, receive, send)

    async def everybody() -> None:
        async with asyncio.TaskGroup() as people:
            for _ in range(20):
                people.create_task(ask(BROWSER, "10.0.0.1"))
            for _ in range(20):
                people.create_task(ask(NOBODY, "10.0.0.2"))
            while len(begun) < live.MOST_AT_ONCE:
                await asyncio.sleep(0)
            people.create_task(ask(OTHER, "10.0.0.1"))
            people.create_task(ask(THIRD, "10.0.0.1"))
            await asyncio.sleep(0)
            for count in range(1, 3):
                gate.release()
                while len(begun) < live.MOST_AT_ONCE + count:
                    await asyncio.sleep(0)
            gate.release(50)

    def of(by: tuple[bytes, bytes]) -> str:
        return owner_in(by[1].decode())

    finished(everybody())
    at_once, then = begun[: live.MOST_AT_ONCE], begun[live.MOST_AT_ONCE :][:2]
    assert sorted(at_once) == ["", *[of(BROWSER)] * live.MOST_OF_ONE]  # each in a thread of its own
    assert then == [of(OTHER), of(THIRD)]
    assert len(begun) == 42


def test_a_stroke_comes_back_with_its_stamp(client: TestClient) -> None:
    bundle_size = int(
        unpack(pictures_in(painted(client, {}))[1]["masks_painter"])[0]["panels"][0]["values"]["shape"][0]
    )
    mask = np.ones((bundle_size, bundle_size), bool)
    mask[2, 1] = False
    body = painted(client, {"masks_preset": "painted", "masks_rows": painted_code(mask), "stamp": "7"})
    header, arrays = unpack(pictures_in(body)[1]["masks_painter"])
    assert header["paint"]["stamp"] == 7
    np.testing.assert_array_equal(arrays[header["paint"]["panel"]] > 0, mask)


def painted(client: TestClient, query: dict[str, str]) -> bytes:
    """Return the answer to a link to the painter."""
    return client.get("/live/masks/paint", params=asked("masks", "paint", query)).content


@pytest.mark.parametrize(
    "query",
    [
        {"text": ""},
        {"text": "x" * 3_000},
        {"model": "nobody's"},
        {"model": "../../etc"},
        {"model": "run:abcdefghij"},
    ],
)
def test_what_cannot_be_read_is_left_to_the_page(client: TestClient, query: dict[str, str]) -> None:
    answer = client.get("/live/attention/heads", params=asked("attention", "heads", query))
    assert answer.status_code == 204
    assert not answer.content


def test_odd_links_get_the_defaults_and_unknown_parts_nothing(client: TestClient) -> None:
    usual = client.get("/live/attention/heads", params=asked("attention", "heads", {})).content
    odd = {"layer": "99", "head": "-1", "step": "🙂", "lang": "xx", "stamp": "9" * 40, "cell": "9999.9999"}
    assert client.get("/live/attention/heads", params=asked("attention", "heads", odd)).content == usual
    for path in ("/live/attention/nothing", "/live/nothing/heads"):
        assert client.get(path).status_code == 404


def test_every_live_part_has_a_case_here() -> None:
    assert {(page, part) for page, part, _ in CASES} == set(LIVE) == ROUTED


def test_a_server_that_stops_begins_nothing_more() -> None:
    async def ask(lane: turns.Lane, held: asyncio.Event) -> bool:
        with suppress(turns.NoMoreTurnsError):
            async with lane.turn("somebody"):
                return await held.wait()
        return False

    async def stop() -> list[bool]:
        lane, held = turns.Lane(1, 1), asyncio.Event()
        asked = [asyncio.create_task(ask(lane, held)) for _ in range(3)]
        await asyncio.sleep(0)
        lane.end()
        held.set()
        return await asyncio.gather(*asked, ask(lane, held))

    assert finished(stop()) == [True, False, False, False]


def test_what_a_step_does_comes_after_the_gradients_of_a_new_text(client: TestClient) -> None:
    link = asked("one_step", "step", {"text": "A text that nobody has asked of before."})
    (first, drawn), (second, again) = (
        pictures_in(client.get("/live/one_step/step", params=link).content) for _ in range(2)
    )
    assert first["more"]
    assert not second["more"]
    assert drawn == again
    assert first["numbers"].items() < second["numbers"].items()
    assert not first["formulas"]
    assert second["formulas"]
