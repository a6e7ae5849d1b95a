"""A fragment that runs again, and those inside it: what none of them has sent to the browser yet is dropped together.

Streamlit drops what the fragment itself had not sent, and keeps what those inside it had not, whose blocks are dropped
with it. The browser then finds no such place: "'setIn' cannot be called on an ElementNode", and a blank page.
"""

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.fragment import FragmentStorage


def clear_with_inner(queue: ForwardMsgQueue, fragments: FragmentStorage, running: list[str] | None) -> None:
    """Drop from a queue of messages what a run is about to send again.

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
    """Let every session do so."""

    def clear(session: AppSession, fragment_ids_this_run: list[str] | None = None) -> None:
        clear_with_inner(session._browser_queue, session._fragment_storage, fragment_ids_this_run)

    AppSession._clear_queue = clear  # pyright: ignore[reportAttributeAccessIssue]
