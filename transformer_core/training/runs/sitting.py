"""A sitting: one worker's time with a run, from taking its lock to letting go; a run may have several.

Read next: worker.py.
"""

import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress

from filelock import FileLock

from transformer_core.training.loop import DivergedError, TrainingStep
from transformer_core.training.runs.beginning import TaskMaker
from transformer_core.training.runs.control import Control
from transformer_core.training.runs.ending import write_bundle
from transformer_core.training.runs.errors import RunError, in_words, words_of
from transformer_core.training.runs.folder import LAUNCHED, LOCK, RESERVE, STATE, hold
from transformer_core.training.runs.layouter import DrawerMaker, Layouter
from transformer_core.training.runs.preparation import Prepared, prepare
from transformer_core.training.runs.progress import Progress
from transformer_core.training.runs.slots import Queue
from transformer_core.training.runs.store import RunStore
from transformer_core.training.runs.writer import RunWriter
from transformer_core.training.state import forget_run

SECONDS_BETWEEN_LOOKS, SECONDS_TO_LET_GO = 0.1, 30.0
LONGEST_PAUSE = 3_600.0
PATIENCE_WITH_LAYOUTS = 10.0
RESERVED_BYTES = 1 << 18


class _Stopped(Exception):  # noqa: N818
    """The run was asked to stop."""


class Sitting:
    """Hold a run and take it as far as it gets: to its end, until it is stopped, or until something fails.

    Args:
        store: the run.
        make_task: from the spec, the run's folder and the device to the task.
        make_drawer: of layouts, see Layouter.

    Raises:
        RunError: another worker has the run, it has finished, or its folder cannot be written.
    """

    def __init__(self, store: RunStore, make_task: TaskMaker, make_drawer: DrawerMaker) -> None:
        self._store, self._make_task, self._make_drawer = store, make_task, make_drawer
        self._queue = Queue(store.folder.parent)
        self._lock = hold(store.folder / LOCK, patience=SECONDS_TO_LET_GO)
        try:
            if store.status().state == "finished":
                raise RunError(f"run {store.id} has finished; there is nothing left to do")
            with in_words("the run's folder cannot be written"):
                (store.folder / RESERVE).write_bytes(b"\1" * RESERVED_BYTES)
                self._writer = RunWriter(store.folder)
                self._writer.set_state("starting")
                (store.folder / LAUNCHED).unlink(missing_ok=True)
        except BaseException:
            self._lock.release()
            raise
        self.control = Control(store.folder, self._writer)
        self._slot: FileLock | None = None
        self._prepared: Prepared | None = None
        self._progress: Progress | None = None
        self._layouter: Layouter | None = None

    def work(self) -> None:
        """Do the work; however it ends, readers are told, and the lock and the slot are free."""
        try:
            self._work()
        except Exception as error:
            self._fail(error)
        finally:
            self.control.close()
            self._free_slot()
            with suppress(RunError):
                self._queue.leave(self._store.id)
            self._writer.close()
            (self._store.folder / RESERVE).unlink(missing_ok=True)
            self._lock.release()

    def _work(self) -> None:
        try:
            self._wait_for_slot()
            self.control.enter("starting")
            self._prepared = prepare(self._store, self._writer, self._make_task)
            if self._prepared.task.points is not None:
                self._layouter = Layouter(self._store, self._writer, self._make_drawer)
            self._progress = Progress(self._prepared, self._store.folder, self._writer, self._layouter)
            self._train(self._prepared.run.steps(), self._progress)
            self._finish(self._prepared, self._progress)
        except _Stopped:
            self._stop()

    def _wait_for_slot(self) -> None:
        """Wait for this run's turn; the place in the queue is shown meanwhile."""
        self._queue.join(self._store.id, bounded=False)
        while True:
            if self.control.wish != "resume":
                self._queue.leave(self._store.id)
                self._pause()
                self._queue.join(self._store.id, bounded=False)
            slot = self._queue.take_slot(self._store.id)
            if isinstance(slot, FileLock):
                self._slot = slot
                return
            self.control.enter("queued", queue_place=slot)
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _free_slot(self) -> None:
        if self._slot is not None:
            self._slot.release()
            self._slot = None

    def _pause(self) -> None:
        """Wait while the wish is to pause; an hour of it counts as a stop, so that no memory is held for good."""
        until = time.monotonic() + LONGEST_PAUSE
        while self.control.wish == "pause" and time.monotonic() < until:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        if self.control.wish != "resume":
            raise _Stopped

    def _train(self, steps: Iterator[TrainingStep], progress: Progress) -> None:
        progress.keep_frame()
        while self._take(steps, progress):
            progress.save()
            self._free_slot()
            self._pause()
            self._wait_for_slot()
            progress.restart_clock()
        progress.flush()

    def _take(self, steps: Iterator[TrainingStep], progress: Progress) -> bool:
        """Take steps until none is left, or until asked otherwise: then return True."""
        self.control.enter("running")
        while self.control.wish == "resume":
            step = next(steps, None)
            if step is None:
                return False
            progress.count(step)
        return True

    def _finish(self, prepared: Prepared, progress: Progress) -> None:
        if self._layouter is not None:
            self._layouter.close()
            while not self._layouter.is_done(SECONDS_BETWEEN_LOOKS):
                if self.control.wish == "stop":
                    raise _Stopped
            if self._writer.unpublished():
                raise RunError(self._layouter.message)
        write_bundle(self._store, self._writer, prepared, progress.seconds)
        forget_run(self._store.folder / STATE)
        self.control.enter("finished", message="" if self._layouter is None else self._layouter.message)

    def _stop(self) -> None:
        self._leave_layouts(PATIENCE_WITH_LAYOUTS)
        if self._prepared is not None and self._progress is not None:
            write_bundle(self._store, self._writer, self._prepared, self._progress.seconds)
        self.control.enter("stopped")

    def _fail(self, error: Exception) -> None:
        """Tell readers what went wrong; on a full disk the reserve makes room for the words."""
        if not isinstance(error, ValueError | OSError):
            traceback.print_exception(error)
        (self._store.folder / RESERVE).unlink(missing_ok=True)
        diverged = isinstance(error, DivergedError)
        try:
            if self._progress is not None:
                self._progress.flush()
            self._leave_layouts(PATIENCE_WITH_LAYOUTS if diverged else SECONDS_BETWEEN_LOOKS)
            self.control.enter("failed", message=words_of(error))
        except RunError as unwritable:
            print(f"{words_of(error)}; {unwritable}", file=sys.stderr, flush=True)

    def _leave_layouts(self, patience: float) -> None:
        """Give the layouts that are under way some time; what is left is laid out when the run goes on."""
        if self._layouter is not None:
            self._layouter.close()
            if not self._layouter.is_done(patience):
                self._layouter.give_up()
                self._layouter.is_done(PATIENCE_WITH_LAYOUTS)
