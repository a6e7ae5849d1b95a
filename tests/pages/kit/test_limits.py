"""What visitors may do: files and runs within bounds, nothing on a read-only server; a log without their words."""

import json
import logging
import re
import secrets
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.types import Message, Scope
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from pages.kit import runs, uploads
from pages.kit.runs import starter
from pages.kit.uploads import REFUSED, UploadBounds
from pages.language import words
from pages.serving.connections import LEAST_BYTES, LOOKS, Connections
from pages.serving.limits import Limits, limits
from pages.serving.log import OneLine, Seldom
from tests.helpers.made_runs import made_run
from tests.helpers.pages import finished, run
from tests.helpers.tiny_runs import SPEC
from transformer_core.training.runs import queue as slots
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.launcher import Launcher
from transformer_core.training.runs.run_list import Bounds, RunList
from transformer_core.training.runs.runner import runner
from transformer_core.untrusted.archives import MB

BOUNDS = replace(limits(), upload_mb=5, session_uploads_mb=8, all_uploads_mb=20)
HEAD = b'--part\r\nContent-Disposition: form-data; name="file"; filename="\xe6\xa8\xa1.zip"\r\n\r\n'


@pytest.mark.parametrize(("page", "query"), [("my_model", {"my_model_from": "zip"}), ("train", {"source": "table"})])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_says_that_there_is_no_room_and_works_on(
    page: str, query: dict, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_SESSION_UPLOADS_MB", "8")
    app = run(page, lang=language, **query)
    app.file_uploader[0].set_value(("x.zip" if page == "my_model" else "x.csv", b"", REFUSED)).run()
    assert not app.exception
    said = words(language)["upload.refused"].format(session="8", most="2,000")
    assert said in [error.value for error in app.error]


class Server:
    """What a file comes to: the files held, and an app that keeps what it is handed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bounds: Limits) -> None:
        self.files = MemoryUploadedFileManager("/upload")
        monkeypatch.setattr(uploads, "uploaded_files", lambda: self.files)
        monkeypatch.setattr(uploads, "is_session", lambda _: True)
        self._guard = UploadBounds(self._keep, bounds=bounds)

    async def _keep(self, scope: Scope, _receive: object, send) -> None:
        *_, session, file = scope["path"].split("/")
        length = int(dict(scope["headers"])[b"content-length"])
        record = uploads.UploadedFileRec(file_id=file, name="a", type="text/csv", data=bytes(length))
        self.files.add_file(session, record)
        await send({"type": "http.response.start", "status": 204, "headers": []})

    def put(self, session: str, file: str, megabytes: float, *, length: str | None = None) -> tuple[int, bool]:
        """Bring a file; return the answer's status and whether the file is held."""
        told = str(int(megabytes * MB)) if length is None else length
        path = f"/_stcore/upload_file/{session}/{file}"
        headers = [(b"content-length", told.encode())] if told else []
        answers: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": HEAD, "more_body": False}

        async def send(message: Message) -> None:
            answers.append(message)

        scope = {"type": "http", "method": "PUT", "path": path, "headers": headers}
        finished(self._guard(scope, receive, send))
        held = self.files.get_files(session, [file])
        return answers[0]["status"], bool(held) and held[0].type != REFUSED


def test_three_files_beyond_a_visitors_room_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, BOUNDS)
    assert [server.put("ann", f"{number}", 4) for number in range(5)] == [(204, True)] * 2 + [(204, False)] * 3
    assert server.put("bob", "0", 4) == (204, True)
    assert server.files.get_files("ann", ["4"])[0].name == "模.zip", "Streamlit looks at the ending of its name"


def test_all_visitors_together_have_no_more_than_the_server_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, BOUNDS)
    kept = [server.put(f"visitor{number}", "0", 5)[1] for number in range(8)]
    assert kept == [True] * 4 + [False] * 4
    server.files.remove_session_files("visitor0")
    assert server.put("visitor9", "0", 4) == (204, True)


def test_a_file_that_is_too_large_or_hides_its_size_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(monkeypatch, BOUNDS)
    assert server.put("ann", "0", 7) == (413, False)
    assert server.put("ann", "0", 1, length="") == (411, False)
    assert server.put("ann", "0", 1, length="-5") == (411, False)


def test_many_small_files_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, BOUNDS)
    answers = [server.put("ann", str(number), 0)[0] for number in range(uploads.MOST_FILES + 5)]
    assert answers == [204] * uploads.MOST_FILES + [413] * 5


def test_on_a_read_only_server_no_file_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, replace(BOUNDS, read_only=True))
    assert server.put("ann", "0", 1) == (403, False)


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VITRINE_READ_ONLY", "1")
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))


@pytest.mark.parametrize(
    ("page", "query"), [("train", {}), ("train", {"runs_open": "true"}), ("my_model", {}), ("my_model", {"lang": "zh"})]
)
@pytest.mark.usefixtures("read_only")
def test_where_a_run_starts_or_a_model_opens_the_page_says_that_this_is_closed(page: str, query: dict) -> None:
    app = run(page, **query)
    said = words(query.get("lang", "en"))
    assert not app.exception
    assert said["read_only.said"] in [info.value for info in app.info]
    assert not app.file_uploader
    closed = {said[key] for key in ("train.start", "my_model.open", "run.stop", "runs.delete", "compare.start")}
    assert not closed & {button.label for button in app.button}


@pytest.mark.usefixtures("read_only")
def test_a_run_that_is_there_can_be_looked_at_but_not_stopped(tmp_path: Path) -> None:
    store = made_run(tmp_path, state="stopped")
    app = run("train", run=store.id)
    assert not app.exception
    assert words("en")["run.take_up"] not in {button.label for button in app.button}


@pytest.mark.usefixtures("read_only")
def test_a_direct_call_starts_no_run() -> None:
    with pytest.raises(RunError, match="read-only"):
        starter()


@pytest.mark.usefixtures("read_only")
def test_the_other_pages_work() -> None:
    app = run("attention", text="still alive")
    assert not app.exception
    assert not app.info


def test_a_switch_that_is_neither_0_nor_1_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_READ_ONLY", "yes")
    with pytest.raises(ValueError, match="VITRINE_READ_ONLY='yes' must be a whole number from 0 to 1"):
        limits()


class _Queueing(Launcher):
    """A patched_launcher that puts runs into the queue and starts no worker, as where every slot is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at: list[Path] = []

    def look(self, root: Path) -> dict[str, RunError]:
        self.looked_at.append(root)
        return {}


@pytest.fixture
def patched_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Queueing:
    made = _Queueing()
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(runs, "runner", lambda: made)
    return made


def _pressed(times: int, *, at_once: bool) -> list[str]:
    """Press Start so many times, and return the words of the refusals."""
    refused: list[str] = []

    def press() -> None:
        try:
            runs.begin_run(SPEC)
        except RunError as error:
            refused.append(str(error))

    presses = [threading.Thread(target=press) for _ in range(times)]
    for one in presses:
        one.start()
        if not at_once:
            one.join()
    for one in presses:
        one.join()
    return refused


@pytest.mark.parametrize("at_once", [False, True])
def test_of_forty_presses_as_many_count_as_a_person_may_have_and_the_others_leave_nothing(
    at_once: bool, patched_launcher: _Queueing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runs, "bounds", lambda: Bounds(live=3))
    refused = _pressed(40, at_once=at_once)
    assert refused == ["3 of your runs compute or wait, and no more may; stop one, or come back later"] * 37
    assert len(RunList(tmp_path).all()) == len(slots.Queue(tmp_path).runs()) == 3


def test_a_full_queue_refuses_and_leaves_nothing_and_nothing_older_goes(
    patched_launcher: _Queueing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(slots, "MOST_QUEUED", 2)
    monkeypatch.setenv(slots.MOST_RUNS, "1")
    monkeypatch.setattr(runs, "bounds", lambda: Bounds(runs=4, live=100))
    older = RunList(tmp_path).create(SPEC)
    refused = _pressed(40, at_once=False)
    assert refused == ["3 runs wait already, and no more may; stop one, or come back later"] * 37
    found = {store.id for store in RunList(tmp_path).all()}
    assert found == {older.id, *slots.Queue(tmp_path).runs()}


@pytest.mark.usefixtures("on_a_network", "patched_launcher")
def test_no_key_starts_nothing_and_fresh_keys_of_one_address_fill_no_queue_in_which_a_class_has_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    people = 40
    assert people < runs.MOST_RUNS_OF_AN_ADDRESS < slots.MOST_QUEUED
    monkeypatch.setattr(runs, "MOST_RUNS_OF_AN_ADDRESS", 6)
    monkeypatch.setattr(slots, "MOST_QUEUED", 10)
    monkeypatch.setattr(runs, "_started_from", {})
    assert _pressed(2, at_once=False) == [words("en")["run.cookies"]] * 2
    monkeypatch.setattr(runs, "is_person", lambda: True)
    monkeypatch.setattr(runs, "visitor", lambda: secrets.token_hex(16))  # another one each time
    monkeypatch.setattr(runs, "address", lambda: "10.0.0.1")
    refused = _pressed(18, at_once=False)
    assert refused == [words("en")["run.address"].format(most=6)] * 12
    waiting = slots.Queue(tmp_path).runs()
    assert len(waiting) == 6
    monkeypatch.setattr(runs, "address", lambda: "10.0.0.2")
    assert _pressed(1, at_once=False) == []
    monkeypatch.setattr(runs, "address", lambda: "10.0.0.1")
    runner().ask(RunList(tmp_path).open(waiting[0]), "stop")
    assert _pressed(1, at_once=False) == []


def test_a_server_that_begins_looks_for_what_waits_and_one_for_looking_does_not(
    patched_launcher: _Queueing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs.start_waiting()
    assert patched_launcher.looked_at == [tmp_path]
    monkeypatch.setenv("VITRINE_READ_ONLY", "1")
    runs.start_waiting()
    assert patched_launcher.looked_at == [tmp_path]


SECRET = "what a visitor wrote"


def record(
    name: str = "vitrine", text: str = "a page failed:", *values: object, error: Exception | None = None, line: int = 1
) -> logging.LogRecord:
    """Return a record of a logger."""
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord(name, logging.ERROR, "there.py", line, text, values, info)


def raised() -> ValueError:
    """Return an error that was raised in this file and quotes a visitor."""
    try:
        raise ValueError(f"cannot read\n{SECRET}")
    except ValueError as error:
        return error


def test_an_error_is_its_kind_and_its_place_on_one_line() -> None:
    line = OneLine().format(record(error=raised()))
    assert line.endswith(f"error a page failed: ValueError at tests/pages/kit/test_limits.py:{_line_of_raise()}")
    assert SECRET not in line
    assert "\n" not in line


def _line_of_raise() -> int:
    traceback = raised().__traceback__
    assert traceback is not None
    return traceback.tb_lineno


def test_an_error_from_elsewhere_names_both_places() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        line = OneLine().format(record(error=error))
    assert re.search(r"JSONDecodeError at tests/pages/kit/test_limits.py:\d+ from decoder.py:\d+$", line)


@pytest.mark.parametrize(
    ("values", "shown"), [((SECRET,), "streamlit.x: refused %s"), ((12,), "streamlit.x: refused 12")]
)
def test_of_another_packages_line_only_numbers_are_filled_in(values: tuple, shown: str) -> None:
    assert OneLine().format(record("streamlit.x", "refused %s", *values)).endswith(shown)


def test_what_happens_a_thousand_times_is_logged_once_a_minute_with_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("pages.serving.log.time.monotonic", lambda: now)
    seldom = Seldom()
    assert [seldom.filter(record()) for _ in range(1000)] == [True] + [False] * 999
    assert seldom.filter(record(line=2)), "another place is another thing"
    now = 61.0
    again = record()
    assert seldom.filter(again)
    assert again.getMessage() == "a page failed: (999 more like it)"


class Connection:
    """One of uvicorn's connections, as far as it is looked at."""

    def __init__(self, address: str = "10.0.0.1") -> None:
        self.client, self.cycle, self.open, self.unsent = (address, 1), None, True, 0
        self.flow = SimpleNamespace(read_paused=False, write_paused=False)

    def connection_made(self, transport: object) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what comes."""

    def is_closing(self) -> bool:
        return not self.open

    def get_protocol(self) -> "Connection":
        return self

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.open = False

    def come(self, *, body: bool = False, answer: bool = False) -> "Connection":
        """Connect, and ask: half a head, or a head and half a body, or whole."""
        self.connection_made(self)
        if body or answer:
            self.cycle = SimpleNamespace(response_complete=False, more_body=body)
        return self


def test_who_asks_half_or_takes_no_answer_is_let_go_and_who_is_slow_but_moves_is_not() -> None:
    watch = Connections(100)
    with watch.watched(Connection):
        half, answered = Connection().come(), Connection().come(answer=True)
        still, moving, held_up = (Connection().come(body=True) for _ in range(3))
        deaf, slow = Connection().come(answer=True), Connection().come(answer=True)
        again = Connection().come(answer=True)
        held_up.flow.read_paused = deaf.flow.write_paused = slow.flow.write_paused = True
        deaf.unsent = 7
        for look in range(3 * LOOKS):
            slow.unsent = look
            moving.data_received(bytes(LEAST_BYTES))
            still.data_received(b".")
            half.data_received(b".")
            again.cycle.response_complete = look % LOOKS == 1  # the next request is in time
            watch.look()
            assert (half.open, still.open, deaf.open) == (look < LOOKS, look < LOOKS, look <= LOOKS)
    assert all(one.open for one in (answered, moving, held_up, slow, again))
    Connection().come()
    assert not {*map(id, watch._phases)} - {*map(id, (answered, moving, held_up, slow, again))}


def test_of_too_many_who_ask_those_of_the_greediest_address_go_the_oldest_first() -> None:
    watch = Connections(20)
    with watch.watched(Connection):
        calm = [Connection("10.0.0.2").come(body=True) for _ in range(3)]
        phones = [Connection("10.0.0.3").come(answer=True) for _ in range(50)]
        many = [Connection("10.0.0.9").come() for _ in range(200)]
    assert all(one.open for one in calm + phones)
    assert sum(one.open for one in many) <= 20 - len(calm)
    assert [one.open for one in many] == sorted(one.open for one in many)
    assert many[-1].open
