"""Estimating a run's time from a few of its steps and one of its frames."""

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from torch import nn

from transformer_core.device import best_device, cores
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.training.histograms import histograms
from transformer_core.training.loop import Run
from transformer_core.training.runs.store.records import Estimate
from transformer_core.training.runs.worker.build_run import (
    TaskMaker,
    build_run,
    compute_repeatably,
    count_parameters,
    threads_of,
)
from transformer_core.training.runs.worker.memory import require_memory
from transformer_core.training.runs.worker.recorder import embed, frame_steps, frames_with_room, measure, save_weights
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.task import Task

SECONDS_OF_STEPS = 0.6
MOST_STEPS = 20


def estimate(spec: RunSpec, folder: Path | None, make_task: TaskMaker) -> Estimate:
    """Make a run's data and model, take a few steps, record one frame, and discard all of it.

    Raises:
        ValueError: the data cannot be made, the model is too large, or the run needs too much memory.
        DivergedError: the first steps already diverge.
    """
    started, device = time.perf_counter(), best_device()
    compute_repeatably(device, threads_of(spec))
    task = make_task(spec, folder, device)
    n_parameters = count_parameters(task)
    frames = frames_with_room(spec.frames, n_parameters)
    run = build_run(spec, task, device)
    require_memory(run, task)
    prepared = time.perf_counter() - started
    a_step = _seconds_a_step(run)
    a_frame = _seconds_a_frame(
        task, run.model, thorough=spec.training.stops_early, layouts_count=threads_of(spec) >= cores()
    )
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
    """Return the median of some steps; the first, which warms up, counts only where there is no time for another."""
    steps = run.steps()
    seconds = [next(steps).seconds]
    until = time.perf_counter() + SECONDS_OF_STEPS - seconds[0]
    while time.perf_counter() < until and len(seconds) < min(MOST_STEPS, run.total_steps):
        seconds.append(next(steps).seconds)
    return median(seconds[1:] or seconds)


def _seconds_a_frame(task: Task, model: nn.Module, *, thorough: bool, layouts_count: bool) -> float:
    started = time.perf_counter()
    model.eval()
    measure(task, model, thorough=thorough)
    histograms(model, {name: weight.detach().clone() for name, weight in model.named_parameters()})
    vectors = None if task.points is None else embed(model, task.points, task.config.padding)[0]
    with tempfile.TemporaryDirectory() as scratch:
        save_weights(model, Path(scratch) / "frames" / "000.safetensors", "")
    if task.points is not None and vectors is not None and layouts_count:
        before = np.ascontiguousarray(vectors[:, :2])  # any layout takes as long to continue
        LayoutSequence({"tsne": before, "pca": before}).add(vectors, task.points.labels, task.points.held_out)
    return time.perf_counter() - started
