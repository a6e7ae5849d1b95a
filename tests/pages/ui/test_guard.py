"""Who may speak to the server: its own names and pages, no others, and no more visitors than it has room for."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from pages.ui.guard import Guard, allowed_hosts
from pages.ui.headers import headers
from pages.ui.language import words

HOME = "http://localhost:8501"
STREAM = "ws://localhost:8501/_stcore/stream"


def client(at: str = HOME, *, most: int = 2, hosts: frozenset[str] | None = None) -> TestClient:
    """Return a visitor of an app that answers everything, with the guard before it; `at` is where it listens."""

    async def answer(_: Request) -> Response:
        return PlainTextResponse("the app")

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("the app")
        await socket.receive()

    routes = [WebSocketRoute("/_stcore/stream", talk), Route("/{path:path}", answer, methods=["GET", "PUT"])]
    guard = Middleware(Guard, hosts=allowed_hosts() if hosts is None else hosts, most=most)
    return TestClient(Starlette(routes=routes, middleware=[guard]), base_url=at)


@pytest.fixture(autouse=True)
def _no_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VITRINE_HOSTS", raising=False)
    monkeypatch.delenv("VITRINE_EMBED_IN", raising=False)


@pytest.mark.parametrize("host", ["localhost:8501", "LOCALHOST", "127.0.0.1:8501", "[::1]:8501", "localhost.:80"])
def test_the_names_of_home_are_answered(host: str) -> None:
    assert client().get("/", headers={"Host": host}).text == "the app"


@pytest.mark.parametrize(
    "host",
    [
        "e.vil",
        "e.vil:8501",
        "localhost.e.vil",
        "localhost@e.vil",
        "0.0.0.0:8501",
        "10.9.8.7",
        "",
        "a b",
        "[",
        "localhost:x",
    ],
)
def test_a_name_that_was_rebound_to_this_machine_is_refused_in_words(host: str) -> None:
    for path in ("/", "/film/abc", "/_stcore/health"):
        refused = client().get(path, headers={"Host": host})
        assert refused.status_code == 421
        assert all(words(tongue)["guard.host"] in refused.text for tongue in ("en", "zh"))
    with pytest.raises(WebSocketDenialResponse), client().websocket_connect(STREAM, headers={"Host": host}):
        pass


@pytest.mark.parametrize(
    ("at", "host"),
    [("192.168.1.7", "192.168.1.7"), ("::ffff:192.168.1.7", "192.168.1.7"), ("fe80::7", "[fe80::7]")],
)
def test_in_a_room_the_server_answers_to_the_address_at_which_it_was_reached(at: str, host: str) -> None:
    at = f"http://[{at}]:8501" if ":" in at else f"http://{at}:8501"
    assert client(at).get("/", headers={"Host": f"{host}:8501"}).status_code == 200
    assert client(at).get("/", headers={"Host": "192.168.1.8:8501"}).status_code == 421


def test_a_name_in_vitrine_hosts_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_HOSTS", "vitrine.example.org, Teacher.local")
    for host in ("vitrine.example.org", "teacher.local:8501"):
        assert client().get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("given", ["https://vitrine.example.org", "vitrine.example.org:443", "a b", "x/y"])
def test_hosts_that_are_no_names_are_refused_at_the_start_in_words(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_HOSTS", given)
    with pytest.raises(ValueError, match=r"VITRINE_HOSTS='.*' must be names such as"):
        allowed_hosts()


@pytest.mark.parametrize("origin", ["http://e.vil", "http://localhost:3000", "null", "http://localhost:8501@e.vil", ""])
def test_a_page_of_another_site_opens_no_socket_and_asks_for_nothing(origin: str) -> None:
    refused = client().get("/film/abc", headers={"Origin": origin})
    assert (refused.status_code, words("en")["guard.origin"] in refused.text) == (403, True)
    with (
        pytest.raises(WebSocketDenialResponse) as denied,
        client().websocket_connect(STREAM, headers={"Origin": origin}),
    ):
        pass
    assert denied.value.status_code == 403


def test_the_apps_own_page_opens_its_socket() -> None:
    with client().websocket_connect(STREAM, headers={"Origin": HOME}) as socket:
        assert socket.receive_text() == "the app"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_from_another_site_opens_a_page_but_its_pictures_and_scripts_ask_in_vain(site: str) -> None:
    sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": "document"}
    assert client().get("/", headers=sent | {"Sec-Fetch-Mode": "navigate"}).status_code == 200
    assert client().get("/film/abc", headers=sent | {"Sec-Fetch-Mode": "no-cors"}).status_code == 403


def test_one_visitor_too_many_reads_a_page_of_words_and_comes_in_when_another_leaves() -> None:
    visitor, opening = client(most=2), {"Sec-Fetch-Dest": "document"}
    with visitor.websocket_connect(STREAM):
        with visitor.websocket_connect(STREAM):
            full = visitor.get("/attention", headers=opening)
            assert (full.status_code, full.headers["retry-after"]) == (503, "30")
            assert all(words(tongue)["guard.full"].format(most=2) in full.text for tongue in ("en", "zh"))
            with pytest.raises(WebSocketDenialResponse), visitor.websocket_connect(STREAM):
                pass
            assert visitor.get("/film/abc").status_code == 200, "those who are in go on"
        assert visitor.get("/attention", headers=opening).status_code == 200


def test_a_visitor_whose_connection_breaks_gives_the_place_back() -> None:
    visitor = client(most=1)
    for _ in range(5):
        with visitor.websocket_connect(STREAM) as socket:
            socket.close()


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/_stcore/metrics/", "/base/_stcore/metrics"])
def test_what_the_server_measures_of_itself_is_not_for_visitors(path: str) -> None:
    assert client().get(path).status_code == 404


def test_every_answer_says_what_the_browser_may_do_even_a_refusal() -> None:
    for answer in (client().get("/"), client().get("/", headers={"Host": "e.vil"})):
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "e.vil" not in answer.headers["content-security-policy"]


def test_a_course_site_may_show_the_app_in_a_frame_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_EMBED_IN", "https://course.example.org, http://localhost:3000")
    policy = headers("localhost")["Content-Security-Policy"]
    assert "frame-ancestors 'self' https://course.example.org http://localhost:3000" in policy
    monkeypatch.setenv("VITRINE_EMBED_IN", "https://course.example.org; script-src *")
    with pytest.raises(ValueError, match=r"VITRINE_EMBED_IN='.*' must name origins"):
        headers("localhost")
