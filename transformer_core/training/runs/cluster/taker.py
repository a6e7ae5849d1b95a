"""The taker of a run: asks the cluster for a place, begins the run there, and takes over what is new until it is over.

It is what a worker process is elsewhere: it holds the run's lock, and is the one writer of the run's database here.
"""

import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformer_core.training.runs.cluster.placed import Placed, forget, placed
from transformer_core.training.runs.cluster.ray_cluster import GoneError, RayCluster, Resources, UnreachableError
from transformer_core.training.runs.cluster.remote_run import RemoteRun, versions
from transformer_core.training.runs.cluster.replica import News, Seen, pack, rewind, seen_of, take_news
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.folder import LOCK, LOG, TAKER, hold, new_id
from transformer_core.training.runs.store.run_store import RunStore

SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_WAITS, SECONDS_BETWEEN_SHORTAGES = 0.1, 0.3, 2.0
SECONDS_BETWEEN_STATES, LARGEST_SHARE_OF_STATES = 10.0, 0.05
PATIENCE_WITH_TROUBLE = 2.0
PATIENCE_WITH_BEGINNING, PATIENCE_WITH_ASKING = 300.0, 10.0


class Taker:
    """Has one run computed on a cluster.

    Args:
        folder: the run's.
        cluster: connected.
        parts: what a RemoteRun is made of.
    """

    def __init__(self, folder: Path, cluster: RayCluster, parts: tuple) -> None:
        self._folder, self._run, self._queue = folder, folder.name, Queue(folder.parent)
        self._cluster, self._parts = cluster, parts

    def work(self) -> None:
        """Do so until the run rests; nothing where the bridge of another server does."""
        with suppress(RunError):
            lock = hold(self._folder / TAKER, patience=0.0)
            try:
                self._work()
            except UnreachableError:
                pass  # it waits; the next look tries again
            except RunError as error:
                self._withdraw(error)
            finally:
                lock.release()

    def _work(self) -> None:
        handle, note = self._submitted()
        if handle is None or note is None:
            return
        if not note.begun and not self._has_place(handle, note):
            self._cluster.kill(handle)
            forget(self._folder)
            return
        lock = hold(self._folder / LOCK)
        try:
            if note.begun or self._begin(handle, note):
                self._follow(handle, placed(self._folder) or note)
        finally:
            self._cluster.kill(handle)
            forget(self._folder)
            lock.release()
        self._hear_late()

    def _withdraw(self, error: RunError) -> None:
        """Take a run that cannot be computed out of the queue, and leave the reason in its log."""
        forget(self._folder)
        self._queue.leave(self._run, str(error))

    def _submitted(self) -> tuple[Any, Placed | None]:
        """Return what computes the run or waits for a place to; ask for it where that was not done yet."""
        note = placed(self._folder)
        if note is not None:
            try:
                return self._cluster.attach(note.name), note
            except GoneError as gone:
                forget(self._folder)
                if note.begun:
                    self._say(gone)
                    return None, None
        if self._run not in self._queue.runs():
            return None, None
        with in_words("the run cannot be started"):
            note = Placed(f"{self._run}-{new_id()}").write(self._folder)
        return self._cluster.submit(RemoteRun, Resources.set_here(), *self._parts, name=note.name), note

    def _has_place(self, handle: Any, note: Placed) -> bool:
        """Wait for a place; False where the run is not to be computed any more.

        Raises:
            GoneError: it cannot be computed.
        """
        asked, told = self._cluster.call(handle, "news", Seen()), 0.0
        while self._run in self._queue.runs():
            try:
                self._cluster.answer(asked, SECONDS_BETWEEN_WAITS)
                return True
            except TimeoutError:
                pass
            except UnreachableError:
                time.sleep(PATIENCE_WITH_TROUBLE)
                asked = self._cluster.call(handle, "news", Seen())
            if time.monotonic() - told > SECONDS_BETWEEN_SHORTAGES:
                told = time.monotonic()
                with suppress(RunError, OSError):
                    note = note.changed(self._folder, shortage=self._cluster.shortage(Resources.set_here()))
        return False

    def _begin(self, handle: Any, note: Placed) -> bool:
        """Begin the run in its place, or go on from its saved state; False where it waits no longer, or cannot be."""
        writer = RunWriter(self._folder)
        try:
            if not self._queue.take(self._run):
                return False
            writer.set_state("starting")
            try:
                rewind(self._folder)
                with in_words("the run cannot be sent to its node"):
                    parts = pack(self._folder)
                asked = self._cluster.call(handle, "begin", self._run, parts, versions())
                where = self._cluster.answer(asked, PATIENCE_WITH_BEGINNING)
                note.changed(self._folder, begun=True, shortage=None, **where)
            except TimeoutError:
                raise RunError(f"the node did not begin the run within {PATIENCE_WITH_BEGINNING:g} s") from None
            except RunError as error:
                writer.set_state("failed", message=str(error))
                return False
            return True
        finally:
            writer.close()

    def _follow(self, handle: Any, note: Placed) -> None:
        """Take over what is new until the run is over; where the cluster or the disk fails for a while, go on later."""
        facts = {"node": json.dumps(note.node, ensure_ascii=False)}
        asked, state_due = None, 0.0
        while True:
            try:
                if (heard := self._queue.heard(self._run)) is not None:
                    self._cluster.answer(self._cluster.call(handle, "ask", heard), PATIENCE_WITH_ASKING)
                if asked is None:
                    seen = seen_of(self._folder, wants_state=time.monotonic() >= state_due)
                    asked = self._cluster.call(handle, "news", seen)
                news: News | None = self._cluster.answer(asked, SECONDS_BETWEEN_LOOKS)
                started, asked = time.monotonic(), None
                if news is None:
                    continue
                take_news(self._folder, news, facts)
                if news.state is not None and news.files:
                    took = time.monotonic() - started
                    state_due = started + max(SECONDS_BETWEEN_STATES, took / LARGEST_SHARE_OF_STATES)
                if news.is_over:
                    if news.pauses:
                        self._queue.let_go(self._run)
                    with suppress(RunError, TimeoutError):
                        self._cluster.answer(self._cluster.call(handle, "leave"), PATIENCE_WITH_ASKING)
                    return
                time.sleep(SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                continue
            except GoneError as gone:
                self._say(gone)
                return
            except RunError:
                asked = None
                time.sleep(PATIENCE_WITH_TROUBLE)

    def _say(self, gone: GoneError) -> None:
        """Leave in the log why the run was interrupted."""
        with suppress(OSError):
            (self._folder / LOG).write_text(f"{gone}\n", encoding="utf-8")

    def _hear_late(self) -> None:
        """Follow what was asked while a run that paused let go."""
        status = RunStore(self._folder, lambda _: self._queue.presence(self._run)).status()
        if status.state != "paused":
            return
        heard = self._queue.heard(self._run)
        if heard == "resume":
            self._queue.join(self._run)
        elif heard == "stop":
            self._queue.set_aside(self._run, replace(status, state="stopped"))
