"""From a spec and its task to a run of the training loop before its first step; a notebook may do the same.

Read next: ../loop.py.
"""

import math
from collections.abc import Callable
from pathlib import Path

import torch

from transformer_core.bundle import MODELS
from transformer_core.training.loop import Run
from transformer_core.training.runs.frame_model import take_over
from transformer_core.training.runs.spec import RunSpec
from transformer_core.training.tasks.task import Task

TaskMaker = Callable[[RunSpec, Path | None, torch.device], Task]


def count_parameters(task: Task) -> int:
    """Return how many numbers a task's model learns, without making it."""
    with torch.device("meta"):
        return sum(math.prod(parameter.shape) for parameter in MODELS[task.kind](task.config).parameters())


def compute_repeatably(device: torch.device, threads: int) -> None:
    """Have torch compute the same digits each time: with a fixed number of threads, and on a GPU without races."""
    torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)


def branches_off(spec: RunSpec) -> bool:
    """Tell whether a run begins with another run's weights."""
    return spec.origin is not None and spec.origin.frame is not None


def begin(
    spec: RunSpec, task: Task, device: torch.device, *, folder: Path | None = None, tokenizer_sha256: str = ""
) -> Run:
    """Return a run before its first step; the same arguments give the same run, to the last digit.

    Args:
        spec: the run's.
        task: what make_task makes of it.
        device: where the model shall be.
        folder: where the weights lie that a run begins with that branches off from another; None makes fresh ones.
        tokenizer_sha256: of the run's own tokenizer.json; the weights must belong to the same.

    Raises:
        RunError: the weights that the run begins with are missing, damaged or do not fit.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(spec.training.seed)
        model = MODELS[task.kind](task.config)
    if branches_off(spec) and folder is not None:
        take_over(model, folder, tokenizer_sha256)
    return Run(
        model.to(device), task.objective, task.batches, steps_per_epoch=task.steps_per_epoch, config=spec.training
    )
