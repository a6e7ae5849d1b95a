"""The real server on a network: what it asks outside, whom it lets in, how much it holds, and what it logs."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from pages.serving.limits import visitors_for
from tests.helpers.browser import started
from tests.helpers.engine import small_bundle
from tests.helpers.pages import finished
from tests.helpers.tiny_runs import wait_for
from tests.helpers.visitor import put_file, rerun, socket_of, upload_places
from transformer_core.bundle import save
from transformer_core.untrusted.archives import MB

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of open files are Unix's")

SOFT_FILES, HARD_FILES = 400, 700
VISITORS = visitors_for(HARD_FILES)
HALF = 300  # requests; more than may be asking at once
SECRET = "a_text_of_a_visitor"
WATCHED = f"""
import os, resource, signal, sys
from pages.serving import connections
connections.SECONDS_BETWEEN_LOOKS = 0.3
resource.setrlimit(resource.RLIMIT_NOFILE, ({SOFT_FILES}, {HARD_FILES}))

def note(event, values):
    if event in ("socket.connect", "socket.getaddrinfo", "urllib.Request"):
        place = values[1] if event == "socket.connect" else values[0]
        host = str(place[0] if isinstance(place, tuple) else place)
        if host not in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "None") and not host.startswith("/"):
            print("ASKED OUTSIDE:", event, host, file=sys.stderr, flush=True)

def tell_files(*_):
    from streamlit.runtime import Runtime
    held = Runtime.instance().uploaded_file_mgr.file_storage.values()
    with open(os.environ["VITRINE_RUNS"] + ".held", "a") as told:
        print(sum(len(file.data) for files in held for file in files.values()), file=told, flush=True)

sys.addaudithook(note)
signal.signal(signal.SIGUSR1, tell_files)
"""
MOST_UPLOADED, UPLOADED = 16, 7 * MB


@dataclass(frozen=True)
class Server:
    """A server opened to a room: its address, its process, its log, and where it tells how much it holds."""

    address: str
    pid: int
    log: Path
    told: Path

    def get(self, path: str, **headers: str) -> tuple[int, str, Message]:
        """Return status, body and headers of an answer."""
        request = urllib.request.Request(f"{self.address}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode(errors="replace"), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def visit(self, origin: str | None = None) -> connect:
        """Open a visitor's socket."""
        return socket_of(self.address, origin=origin)


@contextmanager
def opened(folder: Path) -> Iterator[Server]:
    """Open a server to a room, with few files, small uploads, and a note of every address that it asks."""
    save(small_bundle(max_len=1), folder / "models" / "short")
    save(small_bundle(), folder / "models" / "glass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRINE_MODELS", str(folder / "models"))
        patch.setenv("VITRINE_RUNS", str(folder / "runs"))
        patch.setenv("VITRINE_ROOMS", str(folder / "rooms" / "rooms.sqlite3"))
        patch.setenv("VITRINE_SESSION_UPLOADS_MB", str(MOST_UPLOADED))
        patch.delenv("VITRINE_CONNECTIONS", raising=False)
        options = ("--server.address", "0.0.0.0", "--server.disconnectedSessionTTL", "1")
        with started(folder / "log", *options, first=WATCHED) as (address, pid):
            yield Server(address, pid, folder / "log", folder / "runs.held")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for a few visitors."""
    with opened(tmp_path_factory.mktemp("server")) as one:
        yield one


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for crowds, which no other test asks meanwhile."""
    with opened(tmp_path_factory.mktemp("crowded")) as one:
        yield one


@pytest.mark.nightly
def test_the_server_asks_no_address_outside_not_even_at_a_foreign_origin(server: Server) -> None:
    async def attack() -> None:
        for origin in ("http://e.vil", "http://localhost:1", "https://sub.e.vil:8501"):
            with pytest.raises(InvalidStatus) as refused:
                await server.visit(origin)
            assert refused.value.response.status_code == 403

    finished(attack())
    assert "ASKED OUTSIDE" not in server.log.read_text()


@pytest.mark.nightly
def test_a_model_of_the_servers_own_that_no_page_can_show_is_named_and_left_out(server: Server) -> None:
    async def visit() -> str:
        async with server.visit() as socket:
            return str(await rerun(socket, "attention"))

    assert "the model short is left out: short/config.json has max_len=1" in server.log.read_text()
    there = finished(visit())
    assert 'options: "glass"' in there
    assert 'options: "short"' not in there


def test_the_app_itself_runs_for_a_visitor(server: Server) -> None:
    async def visit() -> list[ForwardMsg]:
        async with server.visit() as socket:
            return await rerun(socket)

    assert len(finished(visit())) > 10


def test_a_rebound_name_gets_nothing_and_a_machine_learns_that_the_server_is_well(server: Server) -> None:
    assert server.get("/", Host="e.vil")[0] == 421
    status, body, headers = server.get("/_health")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert server.get("/_stcore/metrics")[0] == 404


@pytest.mark.parametrize("path", ["/", "/attention", "/_stcore/health", "/runs/underway", "/film/none", "/favicon.png"])
def test_whatever_the_server_sends_is_taken_for_what_it_says_it_is(server: Server, path: str) -> None:
    _, _, headers = server.get(path)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "same-origin"


def test_a_script_of_the_app_carries_the_same_headers(server: Server) -> None:
    script = re.search(r'src="\.(/static/js/[^"]+)"', server.get("/")[1])
    assert script
    assert server.get(script[1])[2]["X-Content-Type-Options"] == "nosniff"


@pytest.mark.nightly
def test_more_visitors_than_files_can_be_open_for_read_words_while_the_others_go_on(crowded: Server) -> None:
    server = crowded

    async def crowd() -> tuple[int, list[int], int]:
        async with AsyncExitStack() as stack:
            inside, refused = [], []
            for _ in range(VISITORS + 10):
                try:
                    inside.append(await stack.enter_async_context(server.visit()))
                    await rerun(inside[-1])
                except InvalidStatus as refusal:
                    refused.append(refusal.response.status_code)
            page = server.get("/attention", **{"Sec-Fetch-Dest": "document"})
            assert f"All {VISITORS} places are taken" in page[1]
            assert server.get("/_health")[0] == 200
            await asyncio.gather(*(rerun(socket) for socket in inside))
            return len(inside), refused, page[0]

    assert finished(crowd()) == (VISITORS, [503] * 10, 503)
    assert len(os.listdir(f"/proc/{server.pid}/fd")) < HARD_FILES


@pytest.mark.nightly
def test_half_requests_end_by_themselves_and_a_page_opens_meanwhile(server: Server) -> None:
    place = urlsplit(server.address)
    head = f"POST /room/open HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 100\r\n\r\n{{".encode()
    with ExitStack() as stack:
        half = [stack.enter_context(socket.create_connection((place.hostname, place.port))) for _ in range(HALF)]
        for number, one in enumerate(half):
            with suppress(ConnectionError):  # there is room for fewer
                one.sendall((b"", b"GET / HTTP/1.1\r\nHo", head)[number % 3])
        assert server.get("/attention", **{"Sec-Fetch-Dest": "document"})[0] == 200
        for one in half:
            with suppress(ConnectionError):
                assert one.recv(1) == b""
    assert "rror" not in server.log.read_text()


def test_no_other_user_of_the_machine_reads_rooms(server: Server) -> None:
    cookie = server.get("/")[2]["Set-Cookie"].partition(";")[0]
    request = urllib.request.Request(f"{server.address}/room/open", data=b'{"lecture": "twelve_scenes", "scene": 1}')
    request.add_header("Cookie", cookie)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert len(json.loads(answer.read())["code"]) == 4
    kept = [path for path in (server.log.parent / "rooms").rglob("*") if path.is_file()]
    assert len(kept) > 1
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


def _held(server: Server) -> int:
    """Return how many bytes of its visitors' files the server holds."""

    def told() -> list[str]:
        return server.told.read_text().splitlines() if server.told.exists() else []

    before = len(told())
    os.kill(server.pid, signal.SIGUSR1)
    return int(wait_for(lambda: told()[before:])[0])


def test_files_beyond_what_a_visitor_may_hold_are_not_kept_and_the_others_go_with_their_visitor(server: Server) -> None:
    async def bring() -> int:
        async with server.visit() as socket:
            await rerun(socket, "my_model", "my_model_from=zip")
            places = await upload_places(socket, [f"{number}.zip" for number in range(4)])
            put = [(server.address, place.upload_url, "a.zip", bytes(UPLOADED)) for place in places]
            answers = [await asyncio.to_thread(put_file, *one) for one in put]
            assert answers == [204] * 4, "the page says which were refused"
            return await asyncio.to_thread(_held, server)

    held = finished(bring())
    assert 2 * UPLOADED <= held < MOST_UPLOADED * MB
    wait_for(lambda: _held(server) == 0)


@pytest.mark.nightly
def test_visitors_who_have_gone_hold_no_files_open(crowded: Server) -> None:
    def opened() -> int:
        return len(os.listdir(f"/proc/{crowded.pid}/fd"))

    async def come_and_go() -> int:
        async with AsyncExitStack() as stack:
            for _ in range(VISITORS):
                await rerun(await stack.enter_async_context(crowded.visit()))
            return opened()

    most = finished(come_and_go())
    wait_for(lambda: opened() <= most - 3 * VISITORS)


def test_the_log_has_few_lines_and_nothing_of_what_a_visitor_wrote(server: Server) -> None:
    async def visit() -> None:
        for _ in range(30):
            async with server.visit() as socket:
                await rerun(socket, "attention", f"text={SECRET}")
            server.get(f"/{SECRET}", Host=f"{SECRET}.e.vil")
            server.get(f"/film/{SECRET}?lang={SECRET}")

    finished(visit())
    log = server.log.read_text()
    assert SECRET not in log
    assert len(log.splitlines()) < 12, log
    assert "info Vitrine is at http://" in log
    assert "warning refused: host (421)" in log


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VITRINE_CONNECTIONS", "many"),
        ("VITRINE_HOSTS", "https://x"),
        ("VITRINE_UPLOAD_MB", "501"),
        ("VITRINE_RUNNER", "moon"),
    ],
)
def test_a_setting_that_cannot_be_ends_the_start_with_words(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(RuntimeError, match=f"Vitrine does not start: {name}='{value}' must"), started(tmp_path / "log"):
        pass
    assert "Traceback" not in (tmp_path / "log").read_text()
