"""RemoteRun: what computes one run on a node of a cluster, and keeps what the server has not taken of it yet.

It writes the run's folder on the node's own disk with the same session as a worker process beside the server.
"""

import os
import platform
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import torch

from transformer_core.training.runs.cluster.replica import News, Seen, news_of, unpack
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.queue import MOST_PAUSES, Queue
from transformer_core.training.runs.store.folder import LOG, making
from transformer_core.training.runs.store.records import Request
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.build_run import TaskMaker
from transformer_core.training.runs.worker.layout_thread import LayoutMaker
from transformer_core.training.runs.worker.session import Session

SECONDS_BETWEEN_LOOKS, SECONDS_OF_A_LOOK = 0.05, 1.0
LONGEST_FORGOTTEN = 24 * 3_600.0
SCRATCH = "vitrine-runs"


def versions() -> dict[str, str]:
    """Return the versions that server and node must share: those whose numbers and files differ."""
    return {"Python": ".".join(platform.python_version_tuple()[:2]), "torch": torch.__version__.partition("+")[0]}


def require_versions(server: Mapping[str, str]) -> None:
    """Raise RunError where this node has other versions than the server."""
    for name, here in versions().items():
        if server[name] != here:
            raise RunError(
                f"the node {platform.node()} has {name} {here}, the server {server[name]}; install the same on both"
            )


class RemoteRun:
    """A run on a node; any thread may ask it while it computes.

    Where nobody asks for a day it ends: that long it keeps what a server that is away has not taken.

    Args:
        make_task, make_layouts: as a worker process has them.
    """

    def __init__(self, make_task: TaskMaker, make_layouts: LayoutMaker) -> None:
        self._parts = (make_task, make_layouts)
        self._folder: Path | None = None
        self._made = ExitStack()  # the folder, as long as this process has the run
        self._over, self._turn = threading.Event(), threading.Lock()
        self._over.set()
        self._asked = time.monotonic()
        threading.Thread(target=self._end_forgotten, name="forgotten", daemon=True).start()

    def begin(self, run: str, parts: Mapping[str, bytes], server: Mapping[str, str]) -> dict[str, str]:
        """Begin the run, or go on from its saved state; one that has begun is left as it is.

        Args:
            run: its id.
            parts: what replica.pack returned of the server's folder.
            server: its versions.

        Returns:
            node: what this machine is called; pid: of this process.

        Raises:
            RunError: the versions differ, or the run cannot be written or has finished.
        """
        with self._turn:
            if self._folder is None:
                require_versions(server)
                os.environ[MOST_PAUSES] = "0"  # a run that pauses gives its resources back
                with in_words("the run cannot be written on its node"):
                    folder = self._made.enter_context(making(Path(tempfile.gettempdir()) / SCRATCH)) / run
                    folder.mkdir()
                    unpack(parts, folder)
                    _write_log(folder)
                self._start(Session(RunStore(folder), *self._parts), folder)
                self._folder = folder
        return {"node": platform.node(), "pid": str(os.getpid())}

    def ask(self, request: Request) -> None:
        """Ask for the run to pause, to resume or to stop; one that has paused already and let go is taken up again.

        Raises:
            RunError: the run cannot be written.
        """
        with self._turn:
            if self._folder is None:
                return
            if not self._over.is_set():
                Queue(self._folder.parent).ask(self._folder.name, request)
            elif request == "resume" and self._pauses():
                self._start(Session(RunStore(self._folder), *self._parts), self._folder)

    def news(self, seen: Seen) -> News | None:
        """Return what the server lacks of the run; wait up to a second for something new.

        Raises:
            RunError: the run cannot be read.
        """
        self._asked = time.monotonic()
        until = time.monotonic() + SECONDS_OF_A_LOOK
        while self._folder is not None:
            with self._turn:
                over = self._over.is_set()
                news = news_of(self._folder, seen, is_over=over, pauses=over and self._pauses())
            if news is None or over or time.monotonic() > until or _is_new(news, seen):
                return news
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return None

    def leave(self) -> None:
        """Delete the run on the node, which ends after this."""
        with self._turn:
            self._made.close()

    def _start(self, session: Session, folder: Path) -> None:
        self._over.clear()
        threading.Thread(target=self._work, args=(session, folder), name="run", daemon=True).start()

    def _work(self, session: Session, folder: Path) -> None:
        session.work()
        while Queue(folder.parent).runs():  # asked to resume while it let go
            session = Session(RunStore(folder), *self._parts)
            session.work()
        self._over.set()

    def _pauses(self) -> bool:
        assert self._folder is not None
        return Queue(self._folder.parent).presence(self._folder.name).paused

    def _end_forgotten(self) -> None:
        while time.monotonic() - self._asked < LONGEST_FORGOTTEN or not self._over.is_set():
            time.sleep(SECONDS_OF_A_LOOK)
        self.leave()
        os._exit(0)


def _write_log(folder: Path) -> None:
    """Let what this process prints from now on go to the run's log."""
    with (folder / LOG).open("wb") as log:
        for printed in (1, 2):
            os.dup2(log.fileno(), printed)


def _is_new(news: News, seen: Seen) -> bool:
    return news.status[-1] != seen.updated or bool(news.frames or news.published or news.files)
