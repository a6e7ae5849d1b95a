"""The memory that a run needs, counted from a few of its examples before a whole batch is computed; and its bound.

A step holds weights, gradients, the optimizer's two moments, what the backward pass needs of each example, and, where a
frame follows, the weights before it. Saving the run's state copies weights and moments once.
"""

import dataclasses
import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from transformer_core.training.loop import Run
from transformer_core.training.precision import computing_in
from transformer_core.training.runs.errors import RunError
from transformer_core.training.tasks.task import Task

try:
    import resource
except ImportError:  # not on Windows
    resource = None

RUN_MEMORY, MB = "VITRINE_RUN_MEMORY", 1 << 20
MOST, SHARE, MOST_ALLOWED_MB = 4 << 30, 0.5, 10**6
MARGIN = 1.5  # of the backward pass over what it finds saved
COPIES_IN_STEP, COPIES_IN_SAVING = 5, 7
TRIED_CELLS, TRIED_BATCHES = 512, 500
ROOM = 1 << 30  # of a process beside its run: threads, layouts, libraries


def free_memory(device: torch.device) -> int:
    """Return how many bytes are free on a device, or for the processor in this machine and its container."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = []
    with suppress(OSError, AttributeError):
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
        free.append(int(found[1]) << 10)  # type: ignore[index]
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most, used = ((group / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        free.append(int(most) - int(used))
    return max(0, min(free, default=2 * MOST))


def bound(device: torch.device) -> int:
    """Return how many bytes a run may need: VITRINE_RUN_MEMORY in MB, else half of what is free, 4 GB at most on a CPU.

    Raises:
        RunError: the variable is not a whole number from 1 to 1,000,000.
    """
    value = os.environ.get(RUN_MEMORY)
    if not value:
        half = int(SHARE * free_memory(device))
        return half if device.type == "cuda" else min(half, MOST)
    if not (value.isdecimal() and len(value) <= 7 and 1 <= int(value) <= MOST_ALLOWED_MB):
        raise RunError(f"{RUN_MEMORY}={value!r:.50} must be a whole number of MB from 1 to {MOST_ALLOWED_MB:,}")
    return int(value) * MB


def needed(run: Run, task: Task) -> int:
    """Return about how many bytes a run takes beside its data: its state, and the largest batch of the first epoch.

    A few examples of that batch go through the model, and what the backward pass would need of them is counted.
    """
    weights = sum(weight.nbytes for weight in run.model.parameters())
    batch = max(islice(task.batches(0), TRIED_BATCHES), key=_cells)
    rows = min(len(batch), max(1, TRIED_CELLS * len(batch) // max(_cells(batch), 1)))
    activations = _kept_for_backward(run, task, _first(batch, rows)) * len(batch) // rows
    control = 0 if task.begun is None else COPIES_IN_STEP * weights  # the undamaged model is trained as well
    return control + max(COPIES_IN_STEP * weights + int(MARGIN * activations), COPIES_IN_SAVING * weights)


def require_memory(run: Run, task: Task) -> None:
    """Refuse a run that would need more memory than it may.

    Raises:
        RunError: it does.
    """
    most, wanted = bound(run.device), needed(run, task)
    if wanted > most:
        raise RunError(
            f"the run needs about {wanted // MB:,} MB of memory, and {most // MB:,} MB may be used: choose a smaller "
            "batch_size, max_len, d_model, d_ff or n_layers"
        )


def limit_memory(device: torch.device) -> None:
    """Have this process fail with an error, and not the machine, where it takes far more than a run may need.

    Only Linux counts a process's data; a GPU's driver maps more than it uses, so that no limit fits there.
    """
    status = Path("/proc/self/status")
    if resource is None or device.type != "cpu" or not status.exists():
        return
    found = re.search(r"VmData:\s+(\d+) kB", status.read_text(encoding="ascii"))
    if found is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = (int(found[1]) << 10) + bound(device) + ROOM
        resource.setrlimit(
            resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def _cells(batch: Any) -> int:
    return batch.numel() if isinstance(batch, Tensor) else sum(tensor.numel() for tensor in vars(batch).values())


def _first(batch: Any, rows: int) -> Any:
    if isinstance(batch, Tensor):
        return batch[:rows]
    return dataclasses.replace(batch, **{name: tensor[:rows] for name, tensor in vars(batch).items()})


def _kept_for_backward(run: Run, task: Task, batch: Any) -> int:
    """Return the bytes that the forward pass keeps of a batch, the weights themselves not counted."""
    own = {weight.untyped_storage().data_ptr() for weight in run.model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def note(tensor: Tensor) -> None:  # a tensor that a hook gives back holds its graph, and the graph the tensor
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage

    devices = [run.device] if run.device.type == "cuda" else []
    hooks = saved_tensors_hooks(note, lambda nothing: nothing)
    with torch.random.fork_rng(devices), computing_in(run.config.precision, run.device), hooks:
        task.objective(run.model.train(), batch)
    return sum(storage.nbytes() for storage in kept.values())
