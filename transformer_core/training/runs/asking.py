"""What may be asked of a run in which state; the same for whatever computes it."""

from collections.abc import Callable
from dataclasses import replace

from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.folder import has_worker
from transformer_core.training.runs.store.records import ENDED, WISHED, Request
from transformer_core.training.runs.store.run_store import NEVER_STARTED, RunStore

Enter = Callable[[RunStore, Callable[[], None]], None]


def start_run(store: RunStore, enter: Enter) -> None:
    """Start a run that was never started; see Runner.start.

    Args:
        enter: puts a run into the queue unless its second argument, called there, raises; and has it computed.
    """

    def require_new() -> None:
        status = store.status()
        if status.state != "interrupted" or not status.message.startswith(NEVER_STARTED):
            raise RunError(f"run {store.id} was started before; it is {status.state}")

    enter(store, require_new)


def ask_run(store: RunStore, request: Request, enter: Enter) -> None:
    """Ask for a run to pause, to resume or to stop; see Runner.ask.

    Args:
        enter: as of start_run.
    """

    def require_resting() -> None:
        status = store.status()
        if status.state == "finished" or status.state not in ("paused", *ENDED):
            raise RunError(f"run {store.id} cannot be resumed; it is {status.state}")

    status, queue = store.status(), Queue(store.folder.parent)
    if request == "resume" and not (status.state == "paused" and status.alive):
        enter(store, require_resting)
        return
    if not has_worker(store.folder):
        if status.state not in ("queued", "starting", "paused") or request not in WISHED:
            raise RunError(f"run {store.id} has no worker that could {request}; it is {status.state}")
        if queue.set_aside(store.id, replace(status, state=WISHED[request])):
            return
    queue.ask(store.id, request)
