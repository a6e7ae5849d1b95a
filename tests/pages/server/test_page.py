"""This server: only an administrator sees who uses what, and may change what others made."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages import lifespan
from pages.language import words
from pages.serving import owners as who
from pages.serving import traffic
from tests.helpers.made_runs import made_run
from tests.helpers.pages import finished, metrics, run, told
from transformer_core.training.runs.errors import RunError

EN = words("en")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of runs, empty."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    who._wrong.clear()
    return tmp_path


@pytest.mark.usefixtures("on_a_network")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_others_see_nothing_and_learn_how_there_can_be_an_administrator(language: str) -> None:
    app = run("server", lang=language)
    assert not app.exception
    assert "VITRINE_ADMIN" in told(app)
    assert not app.metric
    assert not app.text_input


@pytest.mark.usefixtures("on_a_network")
def test_the_secret_opens_the_page_and_a_wrong_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_ADMIN", "a long secret")
    app = run("server")
    app.text_input[0].set_value("a guess")
    app.button[0].click().run()
    assert EN["server.wrong"] in told(app)
    assert not app.metric
    app.text_input[0].set_value("a long secret")
    app.button[0].click().run()
    assert not app.text_input
    assert metrics(app)[EN["server.running"]] == "0"


def test_at_home_the_page_shows_what_there_is(folder: Path) -> None:
    store = made_run(folder)
    app = run("server")
    assert not app.exception
    assert f"(./train?run={store.id})" in told(app)
    assert EN["server.nobody"] in told(app)


def pass_on(messages: list[dict], answers: list[dict], protocols: str = "streamlit") -> list[dict]:
    """Let messages of a browser and the server's answers pass by turns; return the messages that came through."""
    came = []

    async def app(_scope, receive, send) -> None:
        for answer in answers:
            came.append(await receive())
            await send(answer)

    async def receive() -> dict:
        return messages.pop(0)

    async def send(message) -> None: ...

    scope = {"type": "websocket", "headers": [(b"sec-websocket-protocol", protocols.encode())]}
    finished(traffic.ChangesFirst(app)(scope, receive, send))  # type: ignore[arg-type]
    return came


def change(part: str = "", *, auto: bool = False) -> dict:
    """Return a visitor's change, of a part of a page or of all of it, or what looks again by itself."""
    message = BackMsg(rerun_script=ClientState(query_string="text=x", fragment_id=part, is_auto_rerun=auto))
    return {"type": "websocket.receive", "bytes": message.SerializeToString()}


def ended(status: int, part: str = "") -> dict:
    """Return the server's word that a run of a page, or of a part of it, has ended."""
    message = ForwardMsg(script_finished=status)  # type: ignore[arg-type]
    message.metadata.run.script_run_id = "5f41b2a3-0d7e-4ac5-8a58-f1b05a7e31c9"
    message.metadata.run.fragment_ids.extend([part] * bool(part))
    return {"type": "websocket.send", "bytes": message.SerializeToString()}


def test_a_browser_whose_session_is_lost_gets_all_of_a_page_where_it_asks_for_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "is_session", lambda name: name == "kept")
    done = ended(ForwardMsg.FINISHED_SUCCESSFULLY)
    for before, first in (("lost", ""), ("kept", "part")):
        came = pass_on([change("part"), change("part")], [done, done], f"streamlit, token, {before}")
        assert [BackMsg.FromString(one["bytes"]).rerun_script.fragment_id for one in came] == [first, "part"]


def test_a_change_counts_once_when_the_page_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = traffic.Counter()
    monkeypatch.setattr(traffic, "COUNTER", counter)
    again, done = ForwardMsg.FINISHED_EARLY_FOR_RERUN, ForwardMsg.FINISHED_SUCCESSFULLY
    large = {"type": "websocket.send", "bytes": b"x" * 10_000}
    pass_on([change(), change(), change()], [ended(again), large, ended(done)])
    pass_on(
        [{"type": "websocket.receive", "bytes": b"\xff\xff"}], [ended(done)]
    )  # what is no message, nobody waits for
    found = counter.look()
    assert found.people == 0
    assert found.changes == pytest.approx(1 / traffic.SECONDS_LOOKED_BACK)
    assert found.median is not None
    assert found.median < 1.0


def test_what_looks_again_waits_for_a_change_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    page, part = ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
    again = ForwardMsg.FINISHED_EARLY_FOR_RERUN
    other = {"type": "websocket.send", "bytes": b"x"}
    box, look = change("box"), change("box", auto=True)
    assert pass_on([look, look], [ended(part, "box"), ended(part, "box")]) == [look, look]
    assert pass_on([box, look, change()], [other, other]) == [box, change()]  # a look is let go
    assert pass_on([box, look], [ended(part, "box"), other]) == [box, look]
    assert pass_on([box, look, box], [ended(page), other]) == [box, box]  # the page ran before
    assert pass_on([box, look, change(), look], [ended(again, "box"), ended(page), other]) == [box, change(), look]
    assert pass_on([box, look, box], [ended(part, "another"), other]) == [box, box]
    assert pass_on([change(), look, box], [ended(part, "box"), other]) == [change(), box]
    monkeypatch.setattr(traffic, "MOST_SECONDS_AHEAD", 0.0)  # its end was never said
    assert pass_on([box, look], [other, other]) == [box, look]


def test_health_says_in_words_what_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> list[str]:
        lifespan._troubles.cache_clear()
        return lifespan._troubles(0)

    monkeypatch.setenv("VITRINE_ROOMS", str(folder / "rooms.sqlite3"))
    assert wrong() == []
    (folder / "file").touch()
    monkeypatch.setenv("VITRINE_OPENED", str(folder / "file" / "models"))
    assert wrong() == ["the folder of opened models cannot be written: Not a directory"]

    def full(_: Path) -> None:
        raise RunError("100 runs wait already")

    monkeypatch.setattr(lifespan, "runner", lambda: SimpleNamespace(require_room=full))
    monkeypatch.setenv("VITRINE_OPENED", str(folder / "models"))
    assert wrong() == ["no run can be started: 100 runs wait already"]
