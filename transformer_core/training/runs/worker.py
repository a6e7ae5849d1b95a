"""The worker: `python -m transformer_core.training.runs.worker`, one process for one run.

It speaks in lines of JSON, and can so stand by with everything imported until it is needed:

    worker -> {"ready": true}                                    once, when everything heavy is imported
    -> {"do": "estimate", "spec": "...", "folder": "..."|null}   spec as JSON; the folder where the spec's file lies
    worker -> {"estimate": {...}} or {"error": "words"}          its task is kept for a run of the same spec
    -> {"do": "run", "folder": "..."}                            the run's folder; nothing is read after this
    worker -> {"taken": true} or {"error": "words"}              and on its own from here: it outlives who called it

When its input ends before a run was given, it exits. Read next: launcher.py.
"""

import faulthandler
import hashlib
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import torch

from transformer_core.training.runs.beginning import TaskMaker
from transformer_core.training.runs.errors import words_of
from transformer_core.training.runs.estimate import estimate
from transformer_core.training.runs.folder import LAUNCHED, LOCK, LOG, is_held
from transformer_core.training.runs.layouter import DrawerMaker
from transformer_core.training.runs.rehearsal import rehearse
from transformer_core.training.runs.sitting import Sitting
from transformer_core.training.runs.store import RunStore
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.task import Task

NICENESS = 10
NOT_THE_TASKS = ("name", "frames", "threads", "origin")


class LastTask:
    """A maker of tasks that remembers its last: a run that starts after its estimate has its data at once."""

    def __init__(self, make_task: TaskMaker) -> None:
        self._make_task = make_task
        self._key: str | None = None
        self._task: Task | None = None

    def __call__(self, spec: RunSpec, folder: Path | None, device: torch.device) -> Task:
        """Return the task of a spec."""
        key = self._key_of(spec, folder, device)
        if self._task is None or key != self._key:
            self._task = None
            self._task, self._key = self._make_task(spec, folder, device), key
        return self._task

    def _key_of(self, spec: RunSpec, folder: Path | None, device: torch.device) -> str:
        values = {name: value for name, value in json.loads(spec.to_json()).items() if name not in NOT_THE_TASKS}
        digest = ""
        if folder is not None and spec.data.file is not None and (folder / spec.data.file).is_file():
            with (folder / spec.data.file).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        return json.dumps([values, digest, str(device)], sort_keys=True)


def main(make_task: TaskMaker, make_drawer: DrawerMaker) -> None:
    """Stand by, answer, and do one run.

    Args:
        make_task: from a spec, a folder and a device to the task.
        make_drawer: of layouts, see Layouter.
    """
    with suppress(OSError, AttributeError):
        os.nice(NICENESS)  # pages go first
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    tasks = LastTask(make_task)
    rehearse()
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "run":
            _run(Path(request["folder"]), tasks, make_drawer, answers)
            return
        _answer(answers, _estimate(request, tasks))


def _estimate(request: dict[str, Any], tasks: LastTask) -> dict[str, Any]:
    folder = None if request["folder"] is None else Path(request["folder"])
    try:
        return {"estimate": estimate(RunSpec.from_json(request["spec"]), folder, tasks).to_json()}
    except Exception as error:
        return {"error": words_of(error)}


def _run(folder: Path, tasks: LastTask, make_drawer: DrawerMaker, answers: IO[str]) -> None:
    try:
        sitting = Sitting(RunStore(folder), tasks, make_drawer)
    except Exception as error:
        _answer(answers, {"error": words_of(error)})
        _leave_word(folder, words_of(error))
        return
    signal.signal(signal.SIGTERM, lambda *_: sitting.control.stop())
    _answer(answers, {"taken": True})
    _part(folder, answers)
    sitting.work()


def _leave_word(folder: Path, words: str) -> None:
    """Say why a run was not taken where its readers look, since who called may no longer listen."""
    if not is_held(folder / LOCK):
        with suppress(OSError):
            (folder / LOG).write_text(f"{words}\n", encoding="utf-8")
            (folder / LAUNCHED).unlink(missing_ok=True)


def _part(folder: Path, answers: IO[str]) -> None:
    """Let go of who called: input, answers and complaints lead nowhere or to the run's own log from here on."""
    with suppress(OSError):
        answers.close()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    try:
        log = (folder / LOG).open("wb")
    except OSError:
        log = open(os.devnull, "wb")  # noqa: SIM115
    with log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    faulthandler.enable()


def _answer(answers: IO[str], answer: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    from transformer_core.training.runs.drawing import draw_layouts
    from transformer_core.training.tasks.make import make_task

    main(make_task, draw_layouts)
