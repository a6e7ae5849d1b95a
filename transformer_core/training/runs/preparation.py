"""Preparation: from a run's folder to everything that a sitting works with, fresh or taken up again.

Read next: sitting.py.
"""

import dataclasses
import os
import platform
import time
from dataclasses import dataclass
from typing import Any

import torch

from transformer_core.device import best_device
from transformer_core.training.loop import Run
from transformer_core.training.runs.beginning import (
    TaskMaker,
    begin,
    branches_off,
    compute_repeatably,
    count_parameters,
)
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.folder import STATE, TOKENIZER
from transformer_core.training.runs.frame_model import describe_taken, fingerprint_of
from transformer_core.training.runs.recorder import Recorder
from transformer_core.training.runs.slots import cores
from transformer_core.training.runs.store import RunStore
from transformer_core.training.runs.timetable import BYTES_A_NUMBER, frame_steps, frames_with_room
from transformer_core.training.runs.writer import RunWriter
from transformer_core.training.spec import RunSpec
from transformer_core.training.state import load_run
from transformer_core.training.tasks.task import Task


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a sitting works with.

    Args:
        task: what is learned.
        run: of the loop, at the step where the sitting begins.
        recorder: of frames.
        facts: of the run.
        seconds: of training before this sitting.
    """

    task: Task
    run: Run
    recorder: Recorder
    facts: dict[str, Any]
    seconds: float


def threads_of(spec: RunSpec) -> int:
    """Return how many threads a run computes with."""
    return spec.threads or cores()


def prepare(store: RunStore, writer: RunWriter, make_task: TaskMaker) -> Prepared:
    """Make the data and the model of a run, and bring it to where an earlier sitting left it.

    Raises:
        RunError: the run cannot be read or written, is too large, or is no longer of the same data.
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
    run = begin(spec, task, device, folder=folder, tokenizer_sha256=vocabulary)
    steps = frame_steps(run.total_steps, frames)
    if not load_run(run, folder / STATE):
        writer.forget_progress()
    if not facts:
        facts = _facts_of(spec, task, device, n_parameters=n_parameters, threads=threads, steps=steps)
        facts["tokenizer_sha256"] = vocabulary
        if branches_off(spec):
            facts["notes"].append(describe_taken(run.model, folder))
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
        "prompt": task.prompt,
        "model": dataclasses.asdict(task.config),
        "n_parameters": n_parameters,
        "steps_per_epoch": task.steps_per_epoch,
        "total_steps": steps[-1],
        "frames_planned": steps,
        "bytes_of_weights": n_parameters * BYTES_A_NUMBER * len(steps),
        "notes": notes,
        "device": device.type,
        "device_name": _name_of(device),
        "threads": threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "started": time.time(),
    }


def _name_of(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"a processor of type {platform.machine() or 'unknown'} with {cores()} cores"
