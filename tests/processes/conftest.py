"""Runs whose steps a test lets one by one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.tiny_runs import Gate
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
