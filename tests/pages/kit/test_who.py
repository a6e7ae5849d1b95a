"""Who a visitor is, by which name the server is called, and which runs are underway."""

from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from cachetools import LRUCache
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket
from streamlit import config
from streamlit.testing.v1 import AppTest

from pages import running_sign as underway
from pages.kit import models
from pages.language import words
from pages.link import Link, reading
from pages.running_sign import running_routes
from pages.serving import owners as who
from pages.serving.headers import headers
from pages.serving.hosts import Guard, allowed_hosts
from tests.helpers.made_runs import held, made_run
from tests.helpers.pages import finished, run
from transformer_core.training.runs.run_list import RunList


def ask_as(scope: dict, kind: str = "text/html; charset=utf-8") -> SimpleCookie:
    """Ask the middleware for a page and return the cookies that come with it."""
    sent = []

    async def app(_scope, _receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode())]})

    async def send(message) -> None:
        sent.append(message)

    finished(who.GiveKey(app)({"type": "http", "scheme": "http", "headers": [], **scope}, None, send))  # type: ignore
    given = (value.decode() for name, value in sent[0]["headers"] if name == b"set-cookie")
    return SimpleCookie("; ".join(given))


def test_a_browser_gets_a_key_of_its_own_with_its_first_page_and_keeps_it() -> None:
    first, second = ask_as({})["vitrine"], ask_as({})["vitrine"]
    assert first.value != second.value
    assert first["httponly"]
    assert first["samesite"] == "Lax"
    assert not first["secure"]
    assert ask_as({"scheme": "https"})["vitrine"]["secure"]
    assert not ask_as({"headers": [(b"cookie", f"a=b; vitrine={first.value}".encode())]})
    assert ask_as({"headers": [(b"cookie", b"vitrine=made up")]})["vitrine"].value != "made up"
    assert not ask_as({}, kind="application/json")


def test_the_server_knows_a_key_by_its_hash_alone() -> None:
    key = "k" * 32
    given = who.signed(key)
    assert who.owner_in(f"x=y; vitrine={given}") == who.owner_of(key)
    assert key not in who.owner_of(key)
    made_up = (key, f"{key}.{'x' * who.SIGNATURE}", f"{given}x", f"{'j' * 32}{given[32:]}", "short")
    assert {who.owner_in(f"vitrine={one}") for one in made_up} == {""}
    assert who.owner_in("") == who.owner_in("x=\x00;;=") == ""
    assert (
        ask_as({"headers": [(b"cookie", f"vitrine={key}".encode())]})["vitrine"].value == given
    )  # of an older version


def test_an_address_gets_as_many_keys_as_a_crowd_needs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert who.MOST_KEYS >= 2 * 500  # phones behind one address, each of which may lose its key once
    monkeypatch.setattr(who, "_given", LRUCache(10))
    monkeypatch.setattr(who, "MOST_KEYS", 3)
    assert [bool(ask_as({"client": ("10.0.0.1", port)})) for port in range(5)] == [True] * 3 + [False] * 2
    assert ask_as({"client": ("10.0.0.2", 1)})
    assert ask_as({"client": ("10.0.0.1", 1)}) == {}


def told_in_a_session() -> None:
    """Say who this session is, as a page."""
    import streamlit as st

    from pages.serving import owners as who

    if "try" in st.session_state:
        st.session_state.tried = who.admit(st.session_state.pop("try"))
    st.session_state.found = (who.visitor(), who.is_admin(), who.may_change("somebody else"))


def found(session: AppTest) -> tuple[str, bool, bool]:
    """Return what a session says it is."""
    return session.run().session_state.found


@pytest.mark.usefixtures("on_a_network")
def test_on_a_network_each_session_is_somebody_and_nobody_changes_what_is_not_theirs() -> None:
    first, second = AppTest.from_function(told_in_a_session), AppTest.from_function(told_in_a_session)
    assert found(first)[0] != found(second)[0]
    assert found(first) == found(first)
    assert found(first)[1:] == (False, False)


def test_at_home_one_person_may_do_all(monkeypatch: pytest.MonkeyPatch) -> None:
    before = config.get_option("server.address")
    config.set_option("server.address", "localhost")
    try:
        assert found(AppTest.from_function(told_in_a_session)) == ("", True, True)
        monkeypatch.setenv("VITRINE_HOSTS", "vitrine.example.org")  # a proxy brings others here
        assert found(AppTest.from_function(told_in_a_session))[1:] == (False, False)
    finally:
        config.set_option("server.address", before)


@pytest.mark.usefixtures("on_a_network")
def test_the_secret_lets_a_session_do_all_and_guessing_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    who._wrong.clear()
    monkeypatch.setattr(who, "address", lambda: "10.0.0.1")
    session = AppTest.from_function(told_in_a_session)
    session.session_state["try"] = ""
    assert found(session)[1:] == (False, False)  # no secret is set, so none is right
    monkeypatch.setenv("VITRINE_ADMIN", "a long secret")
    session.session_state["try"] = "a long secret"
    assert found(session)[1:] == (True, True)
    other = AppTest.from_function(told_in_a_session)
    for _ in range(who.MOST_WRONG):
        other.session_state["try"] = "a guess"
        assert found(other)[1:] == (False, False)
    other.session_state["try"] = "a long secret"
    assert found(other)[1:] == (False, False)
    assert found(session)[1:] == (True, True)
    monkeypatch.setattr(who, "address", lambda: "10.0.0.2")
    other.session_state["try"] = "a long secret"
    assert found(other)[1:] == (True, True)
    who._wrong.clear()


def test_on_a_network_a_person_opens_fewer_models_than_at_home(
    on_a_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_PERSON_MODELS", "2")
    with reading(Link({}, "ann")):
        assert (models.room().models, models.room().all_models) == (2, models.MOST_OPENED)


def test_models_in_memory_are_counted_by_their_weights() -> None:
    models.opener.cache_clear()
    sizes = []
    for name in ("lm-rnn", "lm-gru"):
        model = models.open_bundle(name).model
        sizes.append(sum(4 * parameter.numel() for parameter in model.parameters()))
    assert sum(sizes) <= models.opener().cache.currsize < 1.1 * sum(sizes)
    assert models.opener().cache.maxsize == 3_000 << 20


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
        assert all(words(lang)["guard.host"] in refused.text for lang in ("en", "zh"))
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
            assert all(words(lang)["guard.full"].format(most=2) in full.text for lang in ("en", "zh"))
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


ADDRESS = "/runs/underway"


@pytest.fixture
def sign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TestClient:
    """Return a sign of the route alone, which looks anew at every question."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(underway, "SECONDS_FRESH", 0.0)
    return TestClient(Starlette(routes=running_routes()))


def test_nothing_under_way_is_an_empty_list(sign: TestClient, tmp_path: Path) -> None:
    made_run(tmp_path)
    assert sign.get(ADDRESS).json() == {"live": [], "ended": None}


def test_a_run_with_a_worker_is_told_and_its_end_to_whoever_followed_it(sign: TestClient, tmp_path: Path) -> None:
    store = made_run(tmp_path, state="running")
    lock = held(store)
    answer = sign.get(f"{ADDRESS}?was={store.id}")
    assert answer.headers["cache-control"] == "no-store"
    (told,) = answer.json()["live"]
    assert (told["id"], told["name"], told["state"], told["step"], told["total"]) == (
        *(store.id, store.spec.name, "running"),
        *(12, 12),
    )
    assert answer.json()["ended"] is None
    lock.release()
    answer = sign.get(f"{ADDRESS}?was={store.id}").json()
    assert answer["live"] == []
    assert (answer["ended"]["id"], answer["ended"]["state"], answer["ended"]["ended"]) == (
        store.id,
        "interrupted",
        True,
    )


@pytest.mark.parametrize("was", ["", "nosuchrun1", "../../etc", "\u202e", "x" * 9_000])
def test_a_run_that_is_not_there_is_nothing(sign: TestClient, was: str) -> None:
    assert sign.get(ADDRESS, params={"was": was}).json() == {"live": [], "ended": None}


def test_the_disk_is_looked_at_once_a_second_however_many_ask(
    sign: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(underway, "SECONDS_FRESH", 60.0)
    monkeypatch.setattr(RunList, "live", lambda _: looks.append(1) or [])
    for _ in range(50):
        sign.get(ADDRESS)
    assert len(looks) == 1


@pytest.mark.parametrize("page", ["home", "tokens", "train", "compare", "sweep"])
def test_every_page_has_the_sign(page: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    app = run(page, lang="zh")
    assert not app.exception
    assert app.get("bidi_component")


def test_servers_that_start_at_once_sign_with_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(who.SIGNING, str(tmp_path / "new" / "key"))
    exists = Path.exists

    def first_one_is_there(path: Path) -> bool:
        """Let another server write its key just after this one has found none."""
        found = exists(path)
        if not found:
            monkeypatch.setattr(Path, "exists", exists)
            others.append(who._signing.__wrapped__())
        return found

    others: list[bytes] = []
    monkeypatch.setattr(Path, "exists", first_one_is_there)
    assert who._signing.__wrapped__() == others[0] == (tmp_path / "new" / "key").read_bytes()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["key"]
    assert (tmp_path / "new" / "key").stat().st_mode & 0o777 == 0o600
