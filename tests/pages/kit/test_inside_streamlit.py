"""What the app takes from the inside of Streamlit is as it was; each test says what breaks where it is not."""

from dataclasses import fields
from types import SimpleNamespace

import pytest
from starlette.datastructures import Headers
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest
from streamlit.web.server.starlette.starlette_websocket import _parse_subprotocols

from pages.figures.standalone import COMPONENTS
from pages.language import words
from pages.serving import inside_streamlit
from pages.serving.inside_streamlit import drop_what_lies_inside, ended_in, run_in, with_texts_of
from tests.helpers import PATIENCE
from tests.helpers.pages import ENTRY


def delta_of(fragment: str, *path: int) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.add_block.SetInParent()
    message.delta.fragment_id = fragment
    message.metadata.delta_path[:] = path
    return message


@pytest.mark.parametrize(
    ("running", "kept"),
    [
        (["part"], ["", "page", "beside"]),
        (["page"], ["", "beside"]),
        (["inside"], ["", "page", "part", "beside"]),
        (None, []),
    ],
)
def test_no_message_is_kept_of_what_lies_inside_a_fragment_that_runs_again(
    running: list[str] | None, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AppSession, "_clear_queue", AppSession._clear_queue)
    drop_what_lies_inside()
    fragments, queue = MemoryFragmentStorage(), ForwardMsgQueue()
    for name, parent in (("page", None), ("part", "page"), ("inside", "part"), ("beside", None)):
        fragments.register(name, lambda: None, parent_fragment_id=parent)
    for place, name in enumerate(("", "page", "part", "inside", "beside")):
        queue.enqueue(delta_of(name, 0, place))
    session = SimpleNamespace(_browser_queue=queue, _fragment_storage=fragments)
    AppSession._clear_queue(session, running)  # type: ignore[arg-type]
    assert [message.delta.fragment_id for message in queue.flush()] == kept


def test_a_run_is_known_by_its_message_else_texts_are_lost_between_pages_and_waits_are_not_counted() -> None:
    before, after = (ClientState(page_script_hash=name) for name in ("tokens", "masks"))
    before.widget_states.widgets.add(id="text", string_value="typed")
    before.widget_states.widgets.add(id="button", trigger_value=True)
    after.widget_states.widgets.add(id="lang", string_value="en")
    message = {"type": "websocket.receive", "bytes": BackMsg(rerun_script=after).SerializeToString()}
    sent = run_in(with_texts_of(before, after, message))
    assert sent is not None
    assert {one.id: one.string_value for one in sent.widget_states.widgets} == {"lang": "en", "text": "typed"}
    assert with_texts_of(None, after, message) is with_texts_of(after, after, message) is message
    assert run_in({"bytes": b"\xff\xff"}) is run_in({"text": "?"}) is None


@pytest.mark.parametrize(
    ("finished", "for_good"),
    [
        (ForwardMsg.FINISHED_SUCCESSFULLY, True),
        (ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY, True),
        (ForwardMsg.FINISHED_EARLY_FOR_RERUN, False),
    ],
)
def test_the_end_of_a_run_is_known_else_what_looks_again_never_has_its_turn(
    finished: "ForwardMsg.ScriptFinishedStatus.ValueType", for_good: bool
) -> None:
    message = ForwardMsg()
    message.script_finished = finished
    assert ended_in(message.SerializeToString()) == (for_good, [""])
    message.metadata.run.fragment_ids.append("part")
    assert ended_in(message.SerializeToString()) == (for_good, ["part"])
    assert ended_in(delta_of("part", 0).SerializeToString()) is None


def test_files_and_sessions_are_where_they_were_else_uploads_have_no_bounds_and_stay_for_ever() -> None:
    files = MemoryUploadedFileManager("/")
    files.add_file("one", UploadedFileRec(file_id="a", name="a.csv", type="", data=b"x"))
    assert next(iter(files.file_storage["one"].values())).data == b"x"
    files.remove_session_files("one")
    assert "one" not in files.file_storage
    assert list(MemorySessionStorage(ttl_seconds=1)._cache.expire()) == []


def test_a_file_made_on_a_click_outlives_the_ends_of_runs_else_downloads_fail_in_a_full_hall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("load_and_get_id", "delete_file"):  # put back afterwards
        monkeypatch.setattr(MemoryMediaFileStorage, name, getattr(MemoryMediaFileStorage, name))
    monkeypatch.setattr(inside_streamlit, "MOST_DOWNLOADS_KEPT", 3)
    monkeypatch.setattr(inside_streamlit, "MOST_BYTES_KEPT", 100)
    inside_streamlit.keep_downloads.__wrapped__()  # which else is done once
    storage = MemoryMediaFileStorage("/media")
    manager = MediaFileManager(storage)

    def make(content: bytes) -> str:
        clicked = manager.add_deferred(lambda: content, "text/csv", "0.0")
        file = manager.execute_deferred(clicked).rsplit("/")[-1]
        for _ in range(3):  # ends of runs of other visitors
            manager.remove_orphaned_files()
        return file.removesuffix(".csv")

    files = [make(f"{count}".encode()) for count in range(5)]
    assert list(storage._files_by_id) == files[2:]  # the last three are there still
    assert make(b"2") == files[2]  # asked for once more, so it goes last
    files += [make(b"5")]
    assert list(storage._files_by_id) == [files[2], files[4], files[5]]
    large = make(b"x" * 200)
    assert list(storage._files_by_id) == [large]  # the newest stays, however large


def test_a_run_says_whether_it_follows_on_back_else_back_shows_what_was_chosen_later() -> None:
    assert "is_history_navigation" in {field.name for field in fields(ScriptRunContext)}


def test_a_page_is_asked_for_by_the_hash_of_its_name_else_no_lecture_can_be_taken_home() -> None:
    app = AppTest.from_file(str(ENTRY), default_timeout=PATIENCE)
    app._page_hash = inside_streamlit.hash_of_page("masks")
    assert words("en")["masks.heading"] in [header.value for header in app.run().header]


def test_its_files_have_their_names_else_formulas_wait_for_the_page_and_the_hall_has_another_font() -> None:
    assert inside_streamlit.katex_module().endswith(".js")
    assert inside_streamlit.font_file().startswith("static/media/")
    assert "<script" in (inside_streamlit.static_folder() / "index.html").read_text(encoding="utf-8")


def test_components_are_served_as_files_else_their_modules_travel_with_every_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert inside_streamlit.get_bidi_component_manager is not None
    manager = inside_streamlit.get_bidi_component_manager()
    monkeypatch.setattr(inside_streamlit, "get_bidi_component_manager", lambda: manager)
    assert [inside_streamlit.serve_component("vitrine", "share", COMPONENTS) for _ in range(2)] == [True, False]


def test_a_browser_names_the_session_that_it_had_else_nobody_hears_that_files_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inside_streamlit, "get_script_run_ctx", lambda: SimpleNamespace(session_id="new"))
    came = {"": False, "streamlit": False, "streamlit, token": False, "streamlit, , new": False}
    came |= {"streamlit, token, old": True, "streamlit, , old": True}
    assert {protocols: inside_streamlit.has_lost_its_session(protocols) for protocols in came} == came
    assert _parse_subprotocols(Headers({"sec-websocket-protocol": "streamlit, token, old"}))[2] == "old"
