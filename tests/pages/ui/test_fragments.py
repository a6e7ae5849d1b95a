"""What a fragment and those inside it have not sent yet is dropped together where it runs again."""

from types import SimpleNamespace

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.fragment import MemoryFragmentStorage

from pages.ui.fragments import drop_what_lies_inside


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
