"""Kill -9 of worker, server or both, at twenty moments each: no run is lost, and each has the curve of a plain loop.

A moment is a statement in SQL that a process is about to carry out, on the queue's table or on a run's: between any two
of them something on the disk is half done.
"""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.tiny_runs import COMMAND, SPEC, WORKERS, Forked, own_curve, stored_curve, wait_for
from transformer_core import warm_process
from transformer_core.training.runs import launcher as launching
from transformer_core.training.runs.launcher import Launcher
from transformer_core.training.runs.queue import MOST_RUNS, Queue
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.records import ENDED
from transformer_core.training.runs.store.run_store import NEVER_STARTED, RunStore

SHORT = replace(SPEC, training=replace(SPEC.training, epochs=4))  # 12 steps, 5 frames
MOMENTS, RUNS = 20, 2
STATEMENTS, LAST = "TEST_STATEMENTS", "TEST_LAST_STATEMENT"  # a file that is a byte longer by each; none after it


def count_and_die(path: Path, last: int) -> None:
    """Count this process's statements in SQL in the size of a file; die at one of them, before it is carried out."""
    connect, end = sqlite3.connect, os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def traced(_: str) -> None:
        os.write(end, b".")
        if os.fstat(end).st_size == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def connected(*arguments, **how):
        connection = connect(*arguments, **how)
        connection.set_trace_callback(traced)
        return connection

    sqlite3.connect = connected  # type: ignore[assignment]


class Mortal(Forked):
    """A worker that counts its statements, and dies at one of them."""

    @staticmethod
    def main() -> None:
        """Do what the process is for."""
        count_and_die(Path(os.environ[STATEMENTS]), int(os.environ[LAST]))
        Forked.main()


def serve(folders: list[Path], counted: Path, last: int, workers_last: int) -> None:
    """Be a server that starts runs, one after the other; it and its worker may die at one of their statements."""
    os.environ |= {MOST_RUNS: "1", STATEMENTS: f"{counted}-worker", LAST: str(workers_last)}
    warm_process.subprocess = SimpleNamespace(PIPE=subprocess.PIPE, Popen=Mortal)  # type: ignore[assignment]
    launching.SECONDS_BETWEEN_LOOKS = 0.05
    count_and_die(Path(f"{counted}-server"), last)
    launcher = Launcher(COMMAND)
    for folder in folders:
        launcher.start(RunList(folder.parent).open(folder.name))
    signal.pause()


@contextmanager
def served(root: Path, last: int = 0, workers_last: int = 0) -> Iterator[tuple[list[RunStore], BaseProcess]]:
    """Have a server start two new runs; it is gone after the body."""
    stores = [RunList(root).create(SHORT) for _ in range(RUNS)]
    server = WORKERS.Process(target=serve, args=([store.folder for store in stores], root / "n", last, workers_last))
    server.start()
    try:
        yield stores, server
    finally:
        server.kill()
        server.join()


def finish(stores: list[RunStore], runner: Launcher) -> bool:
    """Do what a person does after a crash: start what was never started, resume what was interrupted."""
    runner.look(stores[0].folder.parent)
    for store in stores:
        status = store.status()
        if status.state in ENDED and status.state != "finished" and not status.alive:
            assert status.state == "interrupted", status
            if status.message.startswith(NEVER_STARTED):
                runner.start(store)
            else:
                runner.ask(store, "resume")
    return all(store.status().state == "finished" for store in stores)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How many statements a server carries out to start two runs, and a worker to compute them."""
    root = tmp_path_factory.mktemp("counted")
    with served(root) as (stores, _):
        wait_for(lambda: all(store.status().state == "finished" for store in stores))
        return {name: (root / f"n-{name}").stat().st_size for name in ("server", "worker")}


def die(root: Path, killed: str, last: dict[str, int]) -> list[RunStore]:
    """Start two runs; return them when server, worker or both have died at a statement."""
    lasts = (last["server"] if killed != "worker" else 0, last["worker"] if killed != "server" else 0)
    with served(root, *lasts) as (stores, server):
        if killed == "worker":
            count = root / "n-worker"
            wait_for(
                lambda: (
                    (count.exists() and count.stat().st_size >= last["worker"])
                    or all(store.status().state == "finished" for store in stores)  # in fewer statements
                )
            )
        else:
            server.join()
            assert server.exitcode == -signal.SIGKILL
    return stores


@pytest.mark.nightly
@pytest.mark.parametrize("killed", ["server", "worker", "both"])
def test_a_kill_at_twenty_moments_loses_nothing(killed, counted, workers, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(MOST_RUNS, "1")
    expected = own_curve(SHORT)
    for moment in range(1, MOMENTS + 1):
        root = tmp_path / f"{killed}{moment}"
        root.mkdir()
        last = {name: max(1, moment * counted[name] // (MOMENTS + 1)) for name in counted}
        stores = die(root, killed, last)
        before = [stored_curve(store) for store in stores]
        runner = Launcher(COMMAND)
        wait_for(lambda s=stores, r=runner: finish(s, r))
        runner.close()
        for store, kept in zip(stores, before, strict=True):
            assert kept == expected[: len(kept)], f"{killed} at {last}"
            assert stored_curve(store) == expected, f"{killed} at {last}"
            assert [frame.step for frame in store.frames()] == store.facts()["frames_planned"]
        assert Queue(root).runs() == []
