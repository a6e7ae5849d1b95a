"""The worker: `python -m transformer_core.training.runs.worker.process`, a process that does runs, one at a time.

It reads and writes lines of JSON, and so can wait with everything imported until it is needed:

    worker -> {"ready": true}                                    once, when everything heavy is imported
    -> {"do": "estimate", "spec": "...", "folder": "..."|null}   spec as JSON; the folder where the spec's file lies
    worker -> {"estimate": {...}} or {"error": "words"}          its task is kept for a run of the same spec
    -> {"do": "run", "folder": "..."}                            the run's folder; nothing is read after this
    worker -> {"taken": true} or {"error": "words"}              and it goes on alone, even when its launcher ends

When its run is over, it does those that wait for a slot; then, or when its input ends before a run was given, it exits.
"""

import dataclasses
import faulthandler
import hashlib
import json
import os
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import torch

from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.models import Classifier
from transformer_core.training.batching import LabelledBatch
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import classification
from transformer_core.training.runs.errors import RunError, words_of
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.folder import LOG, START
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.build_run import TaskMaker
from transformer_core.training.runs.worker.estimate import estimate
from transformer_core.training.runs.worker.layout_thread import LayoutMaker, continued_layouts
from transformer_core.training.runs.worker.memory import limit_memory
from transformer_core.training.runs.worker.recorder import embed
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.spec import RunSpec
from transformer_core.training.state import save_run
from transformer_core.training.tasks.task import Points, Task
from transformer_core.untrusted.bundle_files import CONFIG
from transformer_core.warm_process import stand_by

NOT_THE_TASKS = ("name", "frames", "threads", "origin")
TINY = ModelConfig(vocab_size=16, d_model=8, n_heads=2, d_ff=8, n_layers=1, max_len=8)


class LastTask:
    """Makes tasks and keeps the last one, so that a run that follows its estimate has its data at once."""

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
        digests = []
        for name in (spec.data.file, None if spec.start is None else f"{START}/{CONFIG}"):
            if folder is not None and name is not None and (folder / name).is_file():
                with (folder / name).open("rb") as file:
                    digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        return json.dumps([values, digests, str(device)], sort_keys=True)


def main(make_task: TaskMaker, make_layouts: LayoutMaker) -> None:
    """Warm up, answer requests, and do a run and those that wait after it.

    Args:
        make_task: from a spec, a folder and a device to the task.
        make_layouts: see LayoutThread.
    """
    answers = stand_by()
    tasks = LastTask(make_task)
    warm_up()
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "run":
            folder = Path(request["folder"])
            if _run(folder, tasks, make_layouts, answers):
                _go_on(folder.parent, tasks, make_layouts)
            return
        _answer(answers, _estimate(request, tasks))


def warm_up() -> None:
    """Take two steps of a tiny run, embed and lay out a few points, and save, so that torch imports its parts now.

    Making the first optimizer alone imports for more than a second.
    """
    device = best_device()
    batch = LabelledBatch(torch.full((4, 4), 7), torch.tensor([0, 1, 0, 1])).to(device)
    points = Points(texts=["a"] * 4, labels=[0] * 4, held_out=[False] * 4, token_ids=torch.full((4, 4), 7))
    run = Run(
        Classifier(TINY).to(device),
        classification,
        lambda _: [batch],
        steps_per_epoch=1,
        config=TrainConfig(epochs=2),
    )
    sequence = LayoutSequence()
    for _ in run.steps():
        vectors, _ = embed(run.model.eval(), points, TINY.padding)
        sequence.add(vectors, points.labels, points.held_out)
    with tempfile.TemporaryDirectory() as scratch:
        save_run(run, Path(scratch))


def _estimate(request: dict[str, Any], tasks: LastTask) -> dict[str, Any]:
    folder = None if request["folder"] is None else Path(request["folder"])
    try:
        limit_memory(best_device())
        return {"estimate": dataclasses.asdict(estimate(RunSpec.from_json(request["spec"]), folder, tasks))}
    except Exception as error:
        return {"error": words_of(error)}


def _run(folder: Path, tasks: LastTask, make_layouts: LayoutMaker, answers: IO[bytes]) -> bool:
    """Do the run that the launcher gave, and tell whether the process may go on with others."""
    try:
        session = Session(RunStore(folder), tasks, make_layouts)
    except Exception as error:
        _answer(answers, {"error": words_of(error)})
        _withdraw(folder, error)
        return False
    _answer(answers, {"taken": True})
    with suppress(OSError):
        answers.close()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    return _work(session, folder)


def _go_on(root: Path, tasks: LastTask, make_layouts: LayoutMaker) -> None:
    """Do the runs that wait in the queue, as long as a slot is free."""
    queue, may_go_on = Queue(root), True
    while may_go_on and (claimed := queue.claim_next()) is not None:
        run, claim = claimed
        try:
            session = Session(RunStore(root / run), tasks, make_layouts)
        except Exception as error:
            _withdraw(root / run, error)
            continue
        finally:
            claim.release()
        may_go_on = _work(session, root / run)


def _withdraw(folder: Path, error: Exception) -> None:
    with suppress(RunError):
        Queue(folder.parent).leave(folder.name, words_of(error))


def _work(session: Session, folder: Path) -> bool:
    """Train, while SIGTERM stops the run and what is printed goes to its log; return False where SIGTERM came."""
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()
        session.control.stop()

    signal.signal(signal.SIGTERM, end)
    try:
        log = (folder / LOG).open("wb")
    except OSError:
        log = open(os.devnull, "wb")  # noqa: SIM115
    with log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    faulthandler.enable()
    with suppress(RunError):  # a bound that is no number is said when the run is built
        limit_memory(best_device())
    session.work()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return not ended.is_set()


def _answer(answers: IO[bytes], answer: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    from transformer_core.training.tasks.make import make_task

    main(make_task, continued_layouts)
