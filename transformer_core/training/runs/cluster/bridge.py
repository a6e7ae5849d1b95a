"""The bridge: `python -m transformer_core.training.runs.cluster.bridge`, the process that talks to a Ray cluster.

A cluster that fails ends the process that is connected to it, or keeps it for minutes: this one, and never the server.
It reads and writes lines of JSON; each request has an id, which its answer has, too:

    bridge -> {"ready": true}
    -> {"id": 1, "do": "look", "root": "..."}                    compute what waits in a folder of runs, and take over
                                                                 what the cluster computes of it
    -> {"id": 2, "do": "kill", "folder": "..."}                  end what computes a run
    -> {"id": 3, "do": "estimate", "spec": "...", "folder": "..."|null}
    bridge -> {"id": 1}, {"id": 3, "estimate": {...}} or {"id": 2, "error": "words"}

When its input ends it exits; what the cluster computes goes on, and the next bridge takes it over.
"""

import dataclasses
import json
import os
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from transformer_core.training.runs.cluster.placed import placed
from transformer_core.training.runs.cluster.ray_cluster import RayCluster, Resources
from transformer_core.training.runs.cluster.remote_run import require_versions, versions
from transformer_core.training.runs.cluster.taker import Taker
from transformer_core.training.runs.errors import RunError, words_of
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.folder import PLACED
from transformer_core.training.runs.store.records import Estimate
from transformer_core.training.runs.worker.build_run import TaskMaker
from transformer_core.training.runs.worker.estimate import estimate
from transformer_core.training.runs.worker.layout_thread import LayoutMaker
from transformer_core.training.spec import RunSpec
from transformer_core.warm_process import stand_by

PATIENCE_WITH_ESTIMATE = 100.0
ASKING_AHEAD = 1  # runs that ask for a place where there is none: Ray gives it to any that asks, in no order


def estimate_there(spec: RunSpec, data: bytes | None, make_task: TaskMaker, server: dict[str, str]) -> Estimate:
    """Estimate a run's time on the node where this is called.

    Raises:
        RunError: the run cannot be made, or the node has other versions than the server.
    """
    require_versions(server)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            if data is not None and spec.data.file is not None:
                (Path(scratch) / spec.data.file).write_bytes(data)
            return estimate(spec, Path(scratch), make_task)
    except Exception as error:
        raise RunError(words_of(error)) from None


class Bridge:
    """Answers requests; each in a thread of its own.

    Args:
        make_task, make_layouts: as a worker process has them; a node imports them.
    """

    def __init__(self, make_task: TaskMaker, make_layouts: LayoutMaker) -> None:
        self._make_task, self._parts = make_task, (make_task, make_layouts)
        self._cluster = RayCluster()
        self._turn = threading.Lock()
        self._takers: dict[Path, threading.Thread] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked for."""
        try:
            self._cluster.connect()
            if request["do"] == "estimate":
                return {"estimate": dataclasses.asdict(self._estimate(request))}
            if request["do"] == "kill":
                note = placed(Path(request["folder"]))
                if note is not None:
                    self._cluster.kill(self._cluster.attach(note.name))
            else:
                self._look(Path(request["root"]))
        except Exception as error:
            return {"error": words_of(error)}
        return {}

    def _look(self, root: Path) -> None:
        """Take over what the cluster has of a folder of runs, and ask for a place for those whose turn it is."""
        needs = Resources.set_here()
        with self._turn:
            self._takers = {folder: taker for folder, taker in self._takers.items() if taker.is_alive()}
            taken = {note.parent for note in root.glob(f"*/{PLACED}")} | self._takers.keys()
            waiting = [root / run for run in Queue(root).runs()]
            asking = sum(folder in taken for folder in waiting)
            others = [folder for folder in waiting if folder not in taken]
            turn = others[: max(0, (self._cluster.room(needs) or ASKING_AHEAD) - asking)]
            for folder in (*taken, *turn):
                if folder.parent == root and folder not in self._takers:
                    taker = Taker(folder, self._cluster, self._parts)
                    self._takers[folder] = threading.Thread(target=taker.work, name=folder.name, daemon=True)
                    self._takers[folder].start()

    def _estimate(self, request: dict[str, Any]) -> Estimate:
        spec, needs = RunSpec.from_json(request["spec"]), Resources.set_here()
        file = spec.data.file
        data = None if file is None or request["folder"] is None else (Path(request["folder"]) / file).read_bytes()
        asked = self._cluster.compute(estimate_there, needs, spec, data, self._make_task, versions())
        try:
            return self._cluster.answer(asked, PATIENCE_WITH_ESTIMATE)
        except TimeoutError:
            self._cluster.cancel(asked)
            lack = self._cluster.shortage(needs)
            raise RunError(
                f"no estimate came within {PATIENCE_WITH_ESTIMATE:g} s: it needs {lack.needs}, and of {lack.whole} of "
                f"the cluster {lack.free} are free"
            ) from None


def main(make_task: TaskMaker, make_layouts: LayoutMaker) -> None:
    """Answer requests until the input ends.

    Args:
        make_task, make_layouts: see Bridge.
    """
    answers, turn, bridge = stand_by(), threading.Lock(), Bridge(make_task, make_layouts)

    def answer(request: dict[str, Any]) -> None:
        _write(answers, turn, {"id": request["id"], **bridge.answer(request)})

    _write(answers, turn, {"ready": True})
    for line in sys.stdin:
        threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
    os._exit(0)  # what waits for the cluster would keep the process


def _write(answers: IO[bytes], turn: threading.Lock, answer: dict[str, Any]) -> None:
    with turn, suppress(BrokenPipeError):
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    from transformer_core.training.runs.worker.layout_thread import continued_layouts
    from transformer_core.training.tasks.make import make_task

    main(make_task, continued_layouts)
