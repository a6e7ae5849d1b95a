"""Progress: a run's steps and frames on their way to the disk, in small transactions, with a point to return to.

Read next: sitting.py.
"""

import time
from pathlib import Path

from transformer_core.training.loop import TrainingStep
from transformer_core.training.runs.folder import STATE
from transformer_core.training.runs.layouter import Layouter
from transformer_core.training.runs.preparation import Prepared
from transformer_core.training.runs.timetable import Pace
from transformer_core.training.runs.writer import RunWriter, StepRow
from transformer_core.training.state import save_run

SECONDS_BETWEEN_COMMITS = 0.1
SECONDS_BETWEEN_SAVES = 10.0
LARGEST_SHARE_OF_SAVING = 0.05


class Progress:
    """Write down what a run does.

    Args:
        prepared: the run and what belongs to it.
        folder: the run's.
        writer: of its database.
        layouter: told of every frame; None where there are no points.
    """

    def __init__(self, prepared: Prepared, folder: Path, writer: RunWriter, layouter: Layouter | None) -> None:
        self.seconds = prepared.seconds
        self._run, self._recorder = prepared.run, prepared.recorder
        self._folder, self._writer, self._layouter = folder, writer, layouter
        self._pace = Pace()
        self._rows: list[StepRow] = []
        self._committed = 0.0
        self._mark = self._saved = time.monotonic()
        self._seconds_between_saves = SECONDS_BETWEEN_SAVES

    def restart_clock(self) -> None:
        """Begin to count the seconds of training here, so that a pause does not count."""
        self._mark = time.monotonic()

    def count(self, step: TrainingStep) -> None:
        """Write a step down, with a frame where one is due.

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
        """Record the frame of this step, unless an earlier sitting has, and save."""
        self.flush()
        if self._recorder.is_due(self._run.step):
            self._pace.took_frame(self._recorder.record(self._run, self.seconds))
            if self._layouter is not None:
                self._layouter.wake()
        self.save()

    def flush(self) -> None:
        """Write the steps that are not yet in the database."""
        if not self._rows:
            return
        run = self._run
        left = self._pace.seconds_left(run.total_steps - run.step, self._recorder.frames_after(run.step))
        self._writer.add_steps(self._rows, run.step / run.steps_per_epoch, left)
        self._rows, self._committed = [], time.monotonic()

    def save(self) -> None:
        """Save what going on takes, never ahead of the curve; a large run less often, so that it costs at most 5 %."""
        self.flush()
        started = time.monotonic()
        save_run(self._run, self._folder / STATE)
        self._saved = time.monotonic()
        self._seconds_between_saves = max(SECONDS_BETWEEN_SAVES, (self._saved - started) / LARGEST_SHARE_OF_SAVING)
