"""A file for which there is no room is refused in words, on every page that takes files."""

from dataclasses import replace

import pytest
from starlette.types import Message, Scope

from pages.ui import uploads
from pages.ui.language import words
from pages.ui.limits import Limits, limits
from pages.ui.uploads import REFUSED, UploadBounds
from tests.helpers.pages import finished, run
from transformer_core.archives import MB

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
        self.files = uploads.MemoryUploadedFileManager("/upload")
        monkeypatch.setattr(uploads, "_files", lambda: self.files)
        monkeypatch.setattr(uploads.Runtime, "instance", lambda: self)
        self._guard = UploadBounds(self._keep, bounds=bounds)

    def is_active_session(self, _: str) -> bool:
        """Whether a visitor is there: all are."""
        return True

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
