"""An estimate of a run's time, measured on a few of its steps and one of its frames.

Read next: worker.py.
"""

import dataclasses
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from torch import nn

from transformer_core.device import best_device
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.training.loop import Run
from transformer_core.training.runs.beginning import TaskMaker, begin, compute_repeatably, count_parameters
from transformer_core.training.runs.frame_model import save_weights
from transformer_core.training.runs.preparation import threads_of
from transformer_core.training.runs.recorder import embed, measure
from transformer_core.training.runs.slots import cores
from transformer_core.training.runs.spec import RunSpec
from transformer_core.training.runs.timetable import frame_steps, frames_with_room
from transformer_core.training.tasks.task import Task

SECONDS_OF_STEPS = 0.6
MOST_STEPS = 20


@dataclass(frozen=True)
class Estimate:
    """How long a run may take on this machine as busy as it is now.

    Args:
        seconds: of the whole run, its frames included, from the first step on.
        steps: of the whole run.
        seconds_a_step: of training.
        seconds_a_frame: of measuring, following points and keeping weights; and of the layouts, where the training
            leaves no processor to make them beside it.
        frames: that will be kept.
        n_parameters: of the model.
        seconds_to_prepare: it took to make the data; nothing where they are still there from the estimate before.
    """

    seconds: float
    steps: int
    seconds_a_step: float
    seconds_a_frame: float
    frames: int
    n_parameters: int
    seconds_to_prepare: float

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as the worker answers it."""
        return dataclasses.asdict(self)


def estimate(spec: RunSpec, folder: Path | None, make_task: TaskMaker) -> Estimate:
    """Make a run's data and model, take a few steps, record one frame, and throw all of it away.

    Raises:
        ValueError: the data cannot be made, or the model is too large.
        DivergedError: the first steps already diverge.
    """
    started, device = time.perf_counter(), best_device()
    compute_repeatably(device, threads_of(spec))
    task = make_task(spec, folder, device)
    n_parameters = count_parameters(task)
    frames = frames_with_room(spec.frames, n_parameters)
    run = begin(spec, task, device)
    prepared = time.perf_counter() - started
    a_step = _seconds_a_step(run)
    a_frame = _seconds_a_frame(task, run.model, layouts_count=threads_of(spec) >= cores())
    frames = len(frame_steps(run.total_steps, frames))
    return Estimate(
        seconds=run.total_steps * a_step + frames * a_frame,
        steps=run.total_steps,
        seconds_a_step=a_step,
        seconds_a_frame=a_frame,
        frames=frames,
        n_parameters=n_parameters,
        seconds_to_prepare=prepared,
    )


def _seconds_a_step(run: Run) -> float:
    """Return the median of some steps; the first, which warms up, counts only where it is all there is time for."""
    steps = run.steps()
    seconds = [next(steps).seconds]
    until = time.perf_counter() + SECONDS_OF_STEPS - seconds[0]
    while time.perf_counter() < until and len(seconds) < min(MOST_STEPS, run.total_steps):
        seconds.append(next(steps).seconds)
    return median(seconds[1:] or seconds)


def _seconds_a_frame(task: Task, model: nn.Module, *, layouts_count: bool) -> float:
    started = time.perf_counter()
    model.eval()
    measure(task, model, thorough=False)
    vectors = None if task.points is None else embed(model, task.points, task.config.pad_id)[0]
    with tempfile.TemporaryDirectory() as scratch:
        save_weights(model, Path(scratch) / "frames" / "000.safetensors", "")
    if task.points is not None and vectors is not None and layouts_count:
        before = np.ascontiguousarray(vectors[:, :2])  # any picture costs as much to go on from
        LayoutSequence({"tsne": before, "pca": before}).add(vectors, task.points.labels, task.points.held_out)
    return time.perf_counter() - started
