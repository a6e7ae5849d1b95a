"""A session: one worker's time with a run, from taking its lock to releasing it; a run may have several sessions."""

import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from transformer_core.training.early_stopping import until_diverged, watch
from transformer_core.training.loop import DivergedError, TrainingStep
from transformer_core.training.runs.errors import RunError, in_words, words_of
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.database import RunWriter, StepRow
from transformer_core.training.runs.store.folder import (
    LOCK,
    STATE,
    free_room,
    hold,
    leave_reason,
    reserve_room,
)
from transformer_core.training.runs.store.records import evaluations
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.build_run import Prepared, TaskMaker, control_run, prepare
from transformer_core.training.runs.worker.control import Control
from transformer_core.training.runs.worker.finish_run import finish_run
from transformer_core.training.runs.worker.layout_thread import LayoutMaker, LayoutThread
from transformer_core.training.state import forget_run, save_run
from transformer_core.training.tasks.make import TRAINED_ON

SECONDS_BETWEEN_LOOKS, SECONDS_TO_LET_GO = 0.1, 30.0
SECONDS_BETWEEN_COMMITS = 0.1
SECONDS_BETWEEN_SAVES = 10.0
LARGEST_SHARE_OF_SAVING = 0.05
LONGEST_PAUSE = 3_600.0
PATIENCE_WITH_LAYOUTS = 10.0
WEIGHT_OF_THE_NEW = 0.05


class Pace:
    """How long steps and frames take, to estimate the time left."""

    def __init__(self) -> None:
        self._step: float | None = None
        self._frame: float | None = None

    def took_step(self, seconds: float) -> None:
        """Count a step."""
        self._step = seconds if self._step is None else self._step + WEIGHT_OF_THE_NEW * (seconds - self._step)

    def took_frame(self, seconds: float) -> None:
        """Count a frame; the first frames take longest, so the last one has half the weight."""
        self._frame = seconds if self._frame is None else (self._frame + seconds) / 2

    def seconds_left(self, steps: int, frames: int) -> float | None:
        """Return about how long this many steps and frames take; None before the first step."""
        return None if self._step is None else steps * self._step + frames * (self._frame or 0.0)


class Progress:
    """Write a run's steps and frames, and what is needed to continue it.

    Args:
        prepared: the run and what belongs to it.
        folder: the run's.
        writer: of its database.
        layout_thread: notified of every frame; None where there are no points.
    """

    def __init__(self, prepared: Prepared, folder: Path, writer: RunWriter, layout_thread: LayoutThread | None) -> None:
        self.seconds = prepared.seconds
        self._run, self._recorder, self._without_control = prepared.run, prepared.recorder, prepared.task.begun is None
        self._folder, self._writer, self._layout_thread = folder, writer, layout_thread
        self.is_over = False  # early stopping ends the run here
        self._pace = Pace()
        self._rows: list[StepRow] = []
        self._committed = 0.0
        self._mark = self._saved = time.monotonic()
        self._seconds_between_saves = SECONDS_BETWEEN_SAVES

    def restart_clock(self) -> None:
        """Count the seconds of training from now on, so that a pause does not count."""
        self._mark = time.monotonic()

    def before_step(self) -> None:
        """Note what the next step changes, where a frame follows it."""
        self._recorder.before_step(self._run)

    def count(self, step: TrainingStep) -> None:
        """Write a step, with a frame where one is due.

        Raises:
            RunError, OSError: the run cannot be written.
        """
        now = time.monotonic()
        self.seconds += now - self._mark
        self._mark = now
        self._pace.took_step(step.seconds)
        self._rows.append((step.step, step.loss, step.learning_rate, step.gradient_norm, self.seconds))
        if self._recorder.is_due(step.step):
            self.keep_frame()
        elif now - self._saved >= self._seconds_between_saves:
            self.save()
        elif now - self._committed >= SECONDS_BETWEEN_COMMITS:
            self.flush()

    def keep_frame(self) -> None:
        """Record the frame of this step, unless an earlier session did, and save."""
        self.flush()
        if self._recorder.is_due(self._run.step):
            self._pace.took_frame(self._recorder.record(self._run, self.seconds))
            if self._layout_thread is not None:
                self._layout_thread.wake()
            if self._run.config.stops_early:
                course = evaluations(self._writer.frames())
                self.is_over = watch(course, self._run.config, self._run.total_steps).stopped
        self.save()

    def flush(self) -> None:
        """Write the steps that are not in the database yet."""
        if not self._rows:
            return
        run = self._run
        steps = run.total_steps - run.step + (0 if self._without_control else run.total_steps)
        left = self._pace.seconds_left(steps, self._recorder.frames_after(run.step))
        self._writer.add_steps(self._rows, run.step / run.steps_per_epoch, left)
        self._rows, self._committed = [], time.monotonic()

    def save(self) -> None:
        """Save the run's steps, then the state to continue it; less often where saving takes over 5 % of the time."""
        self.flush()
        started = time.monotonic()
        save_run(self._run, self._folder / STATE)
        self._saved = time.monotonic()
        self._seconds_between_saves = max(SECONDS_BETWEEN_SAVES, (self._saved - started) / LARGEST_SHARE_OF_SAVING)


class _Stopped(Exception):  # noqa: N818
    """The run was asked to stop."""


class _LetGo(Exception):  # noqa: N818
    """The run pauses or waits from now on without a process; what it needs to go on is saved."""


class Session:
    """Hold a run and train it to its end, until it is stopped, or until something fails.

    Args:
        store: the run.
        make_task: from the spec, the run's folder and the device to the task.
        make_layouts: see LayoutThread.

    Raises:
        RunError: another worker holds the run, the run has finished, or its folder cannot be written.
    """

    def __init__(self, store: RunStore, make_task: TaskMaker, make_layouts: LayoutMaker) -> None:
        self._store, self._make_task, self._make_layouts = store, make_task, make_layouts
        self._queue = Queue(store.folder.parent)
        self._lock = hold(store.folder / LOCK, patience=SECONDS_TO_LET_GO)
        try:
            if store.status().state == "finished":
                raise RunError(f"run {store.id} has finished; there is nothing left to do")
            with in_words("the run's folder cannot be written"):
                reserve_room(store.folder)
                self._writer = RunWriter(store.folder)
                self._writer.set_state("starting")
        except BaseException:
            free_room(store.folder)
            self._lock.release()
            raise
        self.control = Control(store.folder, self._writer)
        self._prepared: Prepared | None = None
        self._progress: Progress | None = None
        self._layout_thread: LayoutThread | None = None

    def work(self) -> None:
        """Train until the run ends, or pauses or waits without this process.

        However that comes, the state is written, and the lock is released, and the slot with it.
        """
        told = True
        try:
            self._work()
        except Exception as error:
            told = self._fail(error)
            with suppress(RunError):
                self._queue.leave(self._store.id)
        finally:
            self.control.close()
            self._writer.close()
            if told:
                free_room(self._store.folder)
            self._lock.release()

    def _work(self) -> None:
        try:
            self._take_slot()
            self.control.enter("starting")
            self._prepared = prepare(self._store, self._writer, self._make_task)
            if self._prepared.task.points is not None:
                self._layout_thread = LayoutThread(self._store, self._writer, self._make_layouts)
            self._progress = Progress(self._prepared, self._store.folder, self._writer, self._layout_thread)
            self._train(until_diverged(self._prepared.run), self._progress)
            self._finish(self._prepared, self._progress)
        except _Stopped:
            self._stop()
        except _LetGo:
            self._let_go()

    def _take_slot(self) -> None:
        """Take a slot; where none is free, the run waits, and no memory is held."""
        if not self._queue.take_slot(self._store.id):
            raise _LetGo

    def _pause(self) -> None:
        """Wait while a pause is requested, an hour at most and as one of a few, since memory is held meanwhile."""
        until, keeps = time.monotonic() + LONGEST_PAUSE, self._queue.take_pause(self._store.id)
        while self.control.request == "pause" and keeps and time.monotonic() < until:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        if self.control.request == "stop":
            raise _Stopped
        if self.control.request == "pause":
            raise _LetGo

    def _train(self, steps: Iterator[TrainingStep], progress: Progress) -> None:
        progress.keep_frame()
        while self._take(steps, progress):
            progress.save()
            self._pause()
            self._take_slot()
            progress.restart_clock()
        progress.flush()

    def _take(self, steps: Iterator[TrainingStep], progress: Progress) -> bool:
        """Take steps; return False when none is left, and True when a pause or a stop is requested."""
        self.control.enter("running")
        while self.control.request == "resume":
            progress.before_step()
            step = None if progress.is_over else next(steps, None)
            if step is None:
                return False
            progress.count(step)
        return True

    def _finish(self, prepared: Prepared, progress: Progress) -> None:
        if self._layout_thread is not None:
            self._layout_thread.close()
            while not self._layout_thread.is_done(SECONDS_BETWEEN_LOOKS):
                if self.control.request == "stop":
                    raise _Stopped
            if self._writer.unpublished():
                raise RunError(self._layout_thread.message)
        self._train_control(prepared)
        finish_run(self._store, self._writer, prepared, progress.seconds)
        forget_run(self._store.folder / STATE)
        self.control.enter("finished", message="" if self._layout_thread is None else self._layout_thread.message)

    def _train_control(self, prepared: Prepared) -> None:
        """Note what the undamaged model reaches with the same training; a stop leaves that unknown."""
        control = control_run(self._store.spec, prepared.task)
        if control is None:
            return
        with suppress(DivergedError):
            for _ in islice(control.steps(), prepared.run.step):
                if self.control.request == "stop":
                    return
            reached = prepared.task.measure(control.model.eval(), True)["held_out_accuracy"]
            prepared.facts["baselines"] = {TRAINED_ON: reached, **prepared.facts["baselines"]}
            self._writer.set_facts({"baselines": prepared.facts["baselines"]})

    def _stop(self) -> None:
        self._leave_layouts(PATIENCE_WITH_LAYOUTS)
        if self._prepared is not None and self._progress is not None:
            finish_run(self._store, self._writer, self._prepared, self._progress.seconds)
        self.control.enter("stopped")

    def _let_go(self) -> None:
        self._leave_layouts(PATIENCE_WITH_LAYOUTS)
        if self.control.request == "stop":
            self._stop()
        elif self.control.request == "pause":
            self._queue.let_go(self._store.id)
            self.control.enter("paused")
        else:
            self._queue.join(self._store.id)

    def _fail(self, error: Exception) -> bool:
        """Write what went wrong before anything else, since the disk may be full, and tell whether readers see it.

        The reserved room is freed first; where others fill it at once, the reason stays in it.
        """
        leave_reason(self._store.folder, words_of(error))
        told = self._say_failed(error)
        with suppress(OSError):
            if not isinstance(error, ValueError | OSError):
                traceback.print_exception(error)
        with suppress(RunError):
            if self._progress is not None:
                self._progress.flush()
        self._leave_layouts(PATIENCE_WITH_LAYOUTS if isinstance(error, DivergedError) else SECONDS_BETWEEN_LOOKS)
        return told or self._say_failed(error)

    def _say_failed(self, error: Exception) -> bool:
        try:
            self.control.enter("failed", message=words_of(error))
        except RunError:
            return False
        return True

    def _leave_layouts(self, patience: float) -> None:
        """Give the layouts under way some seconds; the rest is laid out when the run is continued."""
        if self._layout_thread is not None:
            self._layout_thread.close()
            if not self._layout_thread.is_done(patience):
                self._layout_thread.give_up()
                self._layout_thread.is_done(PATIENCE_WITH_LAYOUTS)
