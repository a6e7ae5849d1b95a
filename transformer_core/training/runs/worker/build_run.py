"""From a spec to a run of the training loop: fresh, branched off from another run's frame, or continued."""

import copy
import dataclasses
import hashlib
import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from transformer_core.bundle import MODELS
from transformer_core.device import best_device, cores, device_name
from transformer_core.layers.initialization import initialize_normally, initialize_unit_embeddings, shapes_alone
from transformer_core.training.loop import Run
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.folder import ORIGIN, STATE, TOKENIZER
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.memory import require_memory
from transformer_core.training.runs.worker.recorder import (
    BYTES_A_NUMBER,
    VOCABULARY,
    Recorder,
    frame_steps,
    frames_with_room,
)
from transformer_core.training.spec import MOST_STEPS, RunSpec
from transformer_core.training.state import load_run
from transformer_core.training.tasks.task import Task
from transformer_core.untrusted.bundle_files import BundleError, check_headers

TaskMaker = Callable[[RunSpec, Path | None, torch.device], Task]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a session works with.

    Args:
        task: what is learned.
        run: of the training loop, at the step where the session starts.
        recorder: of frames.
        facts: of the run.
        seconds: of training in earlier sessions.
    """

    task: Task
    run: Run
    recorder: Recorder
    facts: dict[str, Any]
    seconds: float


def threads_of(spec: RunSpec) -> int:
    """Return the number of threads of a run."""
    return spec.threads or cores()


def count_parameters(task: Task) -> int:
    """Return the number of parameters of a task's model, without allocating it."""
    with shapes_alone():
        return sum(math.prod(parameter.shape) for parameter in MODELS[task.kind](task.config).parameters())


def compute_repeatably(device: torch.device, threads: int) -> None:
    """Have torch give the same results each time: a fixed number of threads; deterministic algorithms on a GPU."""
    torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)


def build_run(
    spec: RunSpec, task: Task, device: torch.device, *, folder: Path | None = None, tokenizer_sha256: str = ""
) -> Run:
    """Return a run before its first step; the same arguments give the same run, to the last digit.

    Args:
        spec: the run's.
        task: what make_task makes of it.
        device: of the model.
        folder: of the run, with origin.safetensors where it takes weights; None for fresh weights.
        tokenizer_sha256: of the run's own tokenizer.json; the weights of the origin must belong to the same.

    Raises:
        RunError: the run has too many steps, or the weights of the origin are missing, damaged or do not fit.
    """
    if (steps := task.steps_per_epoch * spec.training.epochs) > MOST_STEPS:
        raise RunError(
            f"the run has {steps:,} steps; at most {MOST_STEPS:,} are kept: choose fewer epochs or a larger batch_size"
        )
    with torch.random.fork_rng([]):
        torch.manual_seed(spec.training.seed)
        model = MODELS[task.kind](task.config)
        if spec.network.initial == "unit":
            initialize_unit_embeddings(model)
        elif spec.network.initial == "normal" and spec.kind == spec.data.kind:  # a recurrent model's config says so
            initialize_normally(model)
    if spec.takes_weights and folder is not None:
        _take_over(model, folder, tokenizer_sha256)
    model, sizes = model.to(device), {"steps_per_epoch": task.steps_per_epoch, "config": spec.training}
    return Run(model, task.objective, task.batches, **sizes, zeros=_pruned(model, spec))


def _pruned(model: nn.Module, spec: RunSpec) -> dict[str, Tensor]:
    """Return which numbers of pruned matrices are 0, which they stay (Han et al. 2015, section 3.3)."""
    edits = () if spec.start is None else spec.start.edits
    names = {name for _, name, operation, *_ in edits if operation == "prune"}
    return {name: parameter == 0 for name, parameter in model.named_parameters() if name in names}


def control_run(spec: RunSpec, task: Task) -> Run | None:
    """Return a run that trains the undamaged model as a damaged one is trained; None where the run began otherwise."""
    if task.begun is None:
        return None
    model = copy.deepcopy(task.begun).requires_grad_(True)
    return Run(model, task.objective, task.batches, steps_per_epoch=task.steps_per_epoch, config=spec.training)


def prepare(store: RunStore, writer: RunWriter, make_task: TaskMaker) -> Prepared:
    """Make the data and the model of a run, and load the state that an earlier session saved.

    Raises:
        RunError: the run cannot be read or written, is too large for the memory or the disk, or its data give another
            vocabulary.
        ValueError: see make_task and load_run.
    """
    spec, folder, device = store.spec, store.folder, best_device()
    facts = store.facts()
    threads = facts.get("threads") or threads_of(spec)
    compute_repeatably(device, threads)
    task = make_task(spec, folder, device)
    n_parameters = count_parameters(task)
    frames = frames_with_room(spec.frames, n_parameters)
    vocabulary = _save_tokenizer(task, store, facts)
    run = build_run(spec, task, device, folder=folder, tokenizer_sha256=vocabulary)
    require_memory(run, task)
    steps = frame_steps(run.total_steps, frames)
    if not load_run(run, folder / STATE):
        writer.forget_progress()
    if not facts:
        facts = _facts_of(spec, task, device, n_parameters=n_parameters, threads=threads, steps=steps)
        facts["tokenizer_sha256"] = vocabulary
        if spec.takes_weights:
            facts["notes"].append(_describe_taken(run.model, spec, folder))
        if task.points is not None:
            writer.set_points(task.points.texts, task.points.labels, task.points.held_out)
        writer.set_facts(facts)
    seconds = writer.seconds_at(run.step)
    writer.set_progress(run.step, run.total_steps, run.step / run.steps_per_epoch, seconds)
    recorder = Recorder(
        task, folder, writer, steps=steps, recorded=writer.recorded_frames(), tokenizer_sha256=vocabulary
    )
    return Prepared(task, run, recorder, facts, seconds)


def _save_tokenizer(task: Task, store: RunStore, facts: dict[str, Any]) -> str:
    path = store.folder / TOKENIZER
    draft = path.with_name(f".{path.name}")
    task.tokenizer.save(draft)
    found = fingerprint_of(draft)
    if facts and facts.get("tokenizer_sha256") != found:
        draft.unlink()
        raise RunError("the run's data give another vocabulary than when it began; it cannot go on")
    os.replace(draft, path)
    return found


def _facts_of(
    spec: RunSpec, task: Task, device: torch.device, *, n_parameters: int, threads: int, steps: list[int]
) -> dict[str, Any]:
    notes = []
    if len(steps) < min(spec.frames, steps[-1] + 1):
        notes.append(f"{len(steps)} frames are kept instead of {spec.frames}: more weights would exceed 512 MB.")
    return {
        "kind": task.kind,
        "labels": list(task.labels),
        "baselines": dict(task.baselines),
        "counts": dict(task.counts),
        "prompt": task.prompt,
        "model": dataclasses.asdict(task.config),
        "n_parameters": n_parameters,
        "steps_per_epoch": task.steps_per_epoch,
        "total_steps": steps[-1],
        "frames_planned": steps,
        "bytes_of_weights": n_parameters * BYTES_A_NUMBER * len(steps),
        "notes": notes,
        "device": device.type,
        "device_name": device_name(device),
        "threads": threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "started": time.time(),
    }


def fingerprint_of(tokenizer_file: Path) -> str:
    """Return the SHA-256 of a run's tokenizer.json, which tells whether two runs share a vocabulary."""
    return hashlib.sha256(tokenizer_file.read_bytes()).hexdigest()


def _take_over(model: nn.Module, folder: Path, tokenizer_sha256: str) -> None:
    """Copy the weights that a run takes into its model: those of a frame, or a damaged model's.

    Only parameters of the same name and shape are copied; the others stay fresh, since a changed setting may change
    shapes.

    Raises:
        RunError: the weights cannot be read, have nothing in common with the model, or belong to another vocabulary.
    """
    with in_words("the weights that the run begins with cannot be read"), _opened(folder / ORIGIN) as file:
        if (file.metadata() or {}).get(VOCABULARY) != tokenizer_sha256:
            raise RunError(
                "the weights that the run begins with belong to another vocabulary: keep the data of the run that it "
                "branches off from, or begin with fresh weights"
            )
        taken = _common(model, file)
        if not taken:
            raise RunError("the weights that the run begins with do not fit its model anywhere")
        with torch.no_grad():
            for name, parameter in taken.items():
                parameter.copy_(file.get_tensor(name))


def _describe_taken(model: nn.Module, spec: RunSpec, folder: Path) -> str:
    """Return in words how many tensors _take_over copies, and of what."""
    with _opened(folder / ORIGIN) as file:
        taken, total = len(_common(model, file)), len(list(model.parameters()))
    if spec.start is None or (spec.origin is not None and spec.origin.frame is not None):
        return f"{taken} of {total} tensors are those of the moment that it branches off from."
    edits = f"{len(spec.start.edits)} edit{'s' if len(spec.start.edits) != 1 else ''} of its weights"
    return f"{taken} of {total} tensors are those of {spec.start.model} after {edits}."


def _common(model: nn.Module, file: Any) -> dict[str, nn.Parameter]:
    shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return {name: weight for name, weight in model.named_parameters() if shapes.get(name) == tuple(weight.shape)}


def _opened(path: Path) -> Any:
    try:
        check_headers(path)
        return safe_open(path, framework="pt")
    except (BundleError, SafetensorError) as error:
        raise RunError(f"the weights that the run begins with are damaged: {error!s:.200}") from None
