"""All that leans on the inside of Streamlit, which may change with any version: its messages, sessions and files.

tests/pages/kit/test_inside_streamlit.py says of each part what breaks when it changes.
"""

from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from starlette.types import Message
from streamlit import file_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.fragment import FragmentStorage
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.util import calc_hash

try:
    from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
    from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest
except ImportError:  # not documented, so it may go; the script then travels with every message
    get_bidi_component_manager = None

MOST_DOWNLOADS_KEPT = 64
MOST_BYTES_KEPT = 64 * 2**20  # of the files that nobody has fetched yet

ENDS = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)


def run_in(message: Message) -> ClientState | None:
    """Return what a browser's message says of a run of a page that it asks for; None where it asks for none."""
    asked = BackMsg()
    try:
        asked.ParseFromString(message.get("bytes") or b"")
    except DecodeError:
        return None
    return asked.rerun_script if asked.WhichOneof("type") == "rerun_script" else None


def of_whole_page(message: Message) -> Message:
    """Return a message that asks for a part of a page as one that asks for all of it."""
    asked = BackMsg.FromString(message["bytes"])
    asked.rerun_script.ClearField("fragment_id")
    asked.rerun_script.ClearField("is_auto_rerun")
    return {**message, "bytes": asked.SerializeToString()}


def with_texts_of(before: ClientState | None, run: ClientState, message: Message) -> Message:
    """Return the message that asks for another page's run with the texts of the page before.

    A browser sends a page that is chosen without what was typed on the last one, and Streamlit drops a run that it has
    not begun when another is asked for.
    """
    if before is None or before.page_script_hash == run.page_script_hash:
        return message
    asked, known = BackMsg.FromString(message["bytes"]), {one.id for one in run.widget_states.widgets}
    texts = (one for one in before.widget_states.widgets if one.WhichOneof("value") == "string_value")
    asked.rerun_script.widget_states.widgets.extend(one for one in texts if one.id not in known)
    return {**message, "bytes": asked.SerializeToString()}


def ended_in(data: bytes) -> tuple[bool, list[str]] | None:
    """Return whether a run has ended for good, and which fragments it ran, [""] for the whole page.

    Args:
        data: a message of the server; None comes of one that says of no end.
    """
    message = ForwardMsg()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return None
    if message.WhichOneof("type") != "script_finished":
        return None
    return message.script_finished in ENDS, list(message.metadata.run.fragment_ids) or [""]


def clear_with_inner(queue: ForwardMsgQueue, fragments: FragmentStorage, running: list[str] | None) -> None:
    """Drop from a queue of messages what a run is about to send again, and what lies inside that.

    Streamlit drops what the fragment itself had not sent, and keeps what those inside it had not, whose blocks are
    dropped with it. The browser then finds no such place: "'setIn' cannot be called on an ElementNode", and a blank
    page.

    Args:
        queue: of messages to a browser.
        fragments: of its session.
        running: the fragments that are about to run; None for the whole script.
    """
    if running is not None:
        unsent = {message.delta.fragment_id for message in queue._queue if message.HasField("delta")} - {""}
        inner = [one for one in unsent if fragments.has_ancestor_in(one, running)]
        running = [*running, *inner]
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=running)


def drop_what_lies_inside() -> None:
    """Let every session drop what lies inside a fragment that runs again."""

    def clear(session: AppSession, fragment_ids_this_run: list[str] | None = None) -> None:
        clear_with_inner(session._browser_queue, session._fragment_storage, fragment_ids_this_run)

    AppSession._clear_queue = clear  # pyright: ignore[reportAttributeAccessIssue]


@cache
def keep_downloads() -> None:
    """Let a file that was made on a click be there when the browser comes for it.

    Streamlit counts such a file as nobody's, and removes it at the second end of a run of any visitor: in a full hall
    sooner than the browser asks for it. The last ones stay, the newest always.
    """
    load, delete = MemoryMediaFileStorage.load_and_get_id, MemoryMediaFileStorage.delete_file
    kept: OrderedDict[str, int] = OrderedDict()  # both are called under the manager's lock

    def load_again(storage: MemoryMediaFileStorage, *args: Any, **kwargs: Any) -> str:
        file = load(storage, *args, **kwargs)
        kept.pop(file, None)
        return file

    def delete_later(storage: MemoryMediaFileStorage, file_id: str) -> None:
        file = storage._files_by_id.get(file_id)
        if file is None or file.kind is not MediaFileKind.DOWNLOADABLE:
            delete(storage, file_id)
            return
        kept[file_id] = file.content_size
        while len(kept) > 1 and (len(kept) > MOST_DOWNLOADS_KEPT or sum(kept.values()) > MOST_BYTES_KEPT):
            delete(storage, kept.popitem(last=False)[0])

    MemoryMediaFileStorage.load_and_get_id = load_again  # pyright: ignore[reportAttributeAccessIssue]
    MemoryMediaFileStorage.delete_file = delete_later  # pyright: ignore[reportAttributeAccessIssue]


def uploaded_files() -> MemoryUploadedFileManager:
    """Return where the server keeps the files that visitors bring."""
    return Runtime.instance().uploaded_file_mgr  # type: ignore[return-value]


def is_session(name: str) -> bool:
    """Tell whether a session is there that is called so."""
    return Runtime.instance().is_active_session(name)


def remove_uploaded(file: str) -> None:
    """Free the memory of a file of the session that runs."""
    if (run := get_script_run_ctx()) is not None:
        run.uploaded_file_mgr.remove_file(run.session_id, file)  # type: ignore[attr-defined]


def end_gone_sessions() -> None:
    """End the sessions of visitors who have been gone for server.disconnectedSessionTTL seconds; drop their files."""
    sessions = Runtime.instance()._session_mgr
    for _, gone in sessions._session_storage._cache.expire():  # type: ignore[attr-defined]
        gone.session.shutdown()
    there = {one.session.id for one in sessions.list_sessions()}
    for session in uploaded_files().file_storage.keys() - there:
        uploaded_files().remove_session_files(session)


def session_before(protocols: str) -> str:
    """Return the session that a browser had, which it names when it connects again; "" where it had none.

    Args:
        protocols: the header Sec-WebSocket-Protocol; the third that a browser names is that session.
    """
    return "".join(one.strip() for one in protocols.split(",")[2:3])


def has_lost_its_session(protocols: str) -> bool:
    """Tell whether the browser of this session had another one, which its process held and this one does not.

    Args:
        protocols: as of session_before.
    """
    run = get_script_run_ctx()
    return run is not None and session_before(protocols) not in ("", run.session_id)


def is_back_or_forward() -> bool:
    """Tell whether this run follows on the browser's Back or Forward."""
    run = get_script_run_ctx()
    return run is not None and bool(run.is_history_navigation)


def hash_of_page(name: str) -> str:
    """Return by which name a run asks for a page."""
    return calc_hash(name)


def static_folder() -> Path:
    """Return where the files lie that Streamlit sends to every browser."""
    return Path(file_util.get_static_dir())


@cache
def katex_module() -> str:
    """Return where the server has Streamlit's own KaTeX; "" where it has none: then the page's run writes formulas."""
    scripts = list((static_folder() / "static" / "js").glob("rehype-katex.*.js"))
    return f"./static/js/{scripts[0].name}" if len(scripts) == 1 else ""


@cache
def font_file() -> str:
    """Return where the server has the app's font, "" where Streamlit has it no more under its name."""
    found = next(static_folder().glob("static/media/SourceSansVF-Upright*"), None)
    return "" if found is None else found.relative_to(static_folder()).as_posix()


def serve_component(package: str, name: str, folder: Path) -> bool | None:
    """Let the server send the modules of a component from a folder, so that browsers fetch them once.

    Args:
        folder: of all components; it has a folder of this name.

    Returns:
        Whether it did not do so before; None where this Streamlit cannot.
    """
    if get_bidi_component_manager is None:
        return None
    manager = get_bidi_component_manager()
    if manager.get_component_asset_root(f"{package}.{name}") is not None:
        return False
    config = ComponentConfig(name, folder.name)
    manager.register_from_manifest(ComponentManifest(package, "1", [config]), folder.parent)
    return True
