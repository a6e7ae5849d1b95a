"""Runs whose steps a test lets one by one, and workers that start quickly."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.tiny_runs import COMMAND, Forked, Gate
from transformer_core import warm_process
from transformer_core.training.runs import launcher
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec


@pytest.fixture
def runs(tmp_path: Path) -> RunList:
    """An empty list of runs."""
    return RunList(tmp_path)


@pytest.fixture
def gated(runs: RunList) -> Iterator[Callable[[RunSpec], tuple[RunStore, Gate]]]:
    """Make a run, with the gate that its steps wait for."""
    gates = []

    def made(spec: RunSpec) -> tuple[RunStore, Gate]:
        store = runs.create(spec)
        gates.append(Gate(store.folder))
        return store, gates[-1]

    yield made
    for gate in gates:
        gate.open()


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Forked]]:
    """The workers that launchers start, which start quickly and are gone after the test."""
    begun: list[Forked] = []

    def start(command, **how):  # type: ignore[no-untyped-def]
        if tuple(command) != COMMAND:
            return subprocess.Popen(command, **how)
        begun.append(Forked(command, **how))
        return begun[-1]

    monkeypatch.setattr(warm_process, "subprocess", SimpleNamespace(PIPE=subprocess.PIPE, Popen=start))
    monkeypatch.setattr(launcher, "SECONDS_BETWEEN_LOOKS", 0.05)
    yield begun
    for worker in begun:
        worker.kill()
        worker.wait()
