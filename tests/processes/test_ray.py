"""Runs on a real Ray cluster of two nodes: nodes that die, servers that restart, many at once, and what is refused."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.ray_nodes import cluster
from tests.helpers.tiny_runs import SPEC, WORKERS, in_state, own_curve, stored_curve, wait_for
from transformer_core.training.runs.cluster.placed import Placed, placed
from transformer_core.training.runs.cluster.ray_cluster import ADDRESS, CPUS
from transformer_core.training.runs.cluster.ray_runner import RayRunner
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.run_store import RunStore

BRIDGE = (sys.executable, "-m", "tests.helpers.ray_bridge")
SHORT = replace(SPEC, training=replace(SPEC.training, epochs=8))  # 24 steps, 5 frames
MANY = 20


@pytest.fixture(scope="module")
def two_nodes():
    """The address of a cluster whose head computes nothing, and of two nodes of one processor."""
    pytest.importorskip("ray", reason="ray is not installed (requirements-ray.txt)")
    with cluster(0, 1, 1) as address:
        yield address


@pytest.fixture
def runner(two_nodes: str, monkeypatch: pytest.MonkeyPatch):
    """What computes runs on this cluster."""
    monkeypatch.setenv(ADDRESS, two_nodes)
    made = RayRunner(BRIDGE)
    yield made
    made.close()


@pytest.fixture
def runs(runner: RayRunner, tmp_path: Path) -> RunList:
    """An empty list of runs that are computed there."""
    return RunList(tmp_path, computes=runner)


def noted(store: RunStore) -> Placed:
    """Wait until a run is computed on a node; return what is noted of that."""
    return wait_for(lambda: (note := placed(store.folder)) and note.begun and note)


def node_of(store: RunStore) -> int:
    """Return the process of the node that computes a run."""
    environment = Path(f"/proc/{noted(store).pid}/environ").read_bytes().split(b"\0")
    return int(next(value for value in environment if value.startswith(b"RAY_RAYLET_PID=")).partition(b"=")[2])


@pytest.mark.nightly
def test_twenty_runs_at_once_find_their_places_and_have_their_curves(runner: RayRunner, runs: RunList) -> None:
    specs = [replace(SHORT, training=replace(SHORT.training, seed=seed)) for seed in range(MANY)]
    stores = [runs.create(spec) for spec in specs]
    for store in stores:
        runner.start(store)
    for spec, store in zip(specs, stores, strict=True):
        wait_for(lambda store=store: store.status().state == "finished", 400)
        assert stored_curve(store) == own_curve(spec)
        assert store.facts()["node"]
    assert len(runs.live()) == 0


def serve(folder: Path) -> None:
    """Be a server that starts a run."""
    runner = RayRunner(BRIDGE)
    runner.start(RunList(folder.parent, computes=runner).open(folder.name))
    signal.pause()


@pytest.mark.nightly
def test_a_run_goes_on_without_its_server_and_the_next_one_lacks_nothing(runner: RayRunner, gated) -> None:
    store, gate = gated(SHORT)
    server = WORKERS.Process(target=serve, args=(store.folder,))
    server.start()
    gate.let(7)
    wait_for(lambda: store.status().step == 7)
    os.kill(server.pid, signal.SIGKILL)
    server.join()
    gate.let(8)
    wait_for(lambda: gate.left() == 0)
    assert runner.is_alive(store.folder)
    assert store.status().state == "running"
    assert store.status().step == 7, "nobody takes over what comes"
    runner.look(store.folder.parent)
    wait_for(lambda: store.status().step >= 14)
    runner.ask(store, "pause")
    in_state(store, "paused")
    gate.open()
    wait_for(lambda: placed(store.folder) is None)
    runner.ask(store, "resume")
    in_state(store, "finished")
    assert stored_curve(store) == own_curve(SHORT)
    frames = store.frames()
    assert [frame.step for frame in frames] == store.facts()["frames_planned"]
    assert all(store.weights_path(frame.number) for frame in frames)
    assert len(store.layouts()) == 2 * len(frames)
    assert store.model().name == f"{store.id}-004"


@pytest.mark.nightly
def test_a_run_that_waits_says_for_what(runner: RayRunner, runs: RunList, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.close()
    monkeypatch.setenv(CPUS, "3")
    large = RayRunner(BRIDGE)
    store = runs.create(SHORT)
    large.start(store)
    lack = wait_for(lambda: large.presence(store.folder).shortage)
    assert (lack.needs, lack.whole) == ("3 CPU", "2 CPU")
    large.ask(store, "stop")
    assert store.status().state == "stopped"
    wait_for(lambda: placed(store.folder) is None)
    large.close()


def test_where_no_cluster_can_be_reached_that_is_said_and_the_runs_are_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is not installed (requirements-ray.txt)")
    monkeypatch.setenv(ADDRESS, "127.0.0.1:9")
    runner = RayRunner()
    runs = RunList(tmp_path, computes=runner)
    store = runs.create(SPEC)
    words = r"no Ray cluster can be reached at 127\.0\.0\.1:9 \(RAY_ADDRESS\): Connection refused"
    for ask in (lambda: runner.start(store), lambda: runner.estimate(SPEC), lambda: runner.ask(store, "resume")):
        with pytest.raises(RunError, match=words):
            ask()
    assert [one.status().message for one in runs.all()] == ["the run was never started"]
    wait_for(lambda: runner._trouble)
    with pytest.raises(RunError, match=words):
        runs.create(SPEC)
    runs.delete(store.id)
    runner.close()


@pytest.mark.nightly
def test_a_node_with_another_torch_is_told_apart_in_words(
    runner: RayRunner, runs: RunList, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.close()
    monkeypatch.setenv("VITRINE_TEST_TORCH", "1.0.0")
    old = RayRunner(BRIDGE)
    words = r"the node \S+ has torch \S+, the server 1\.0\.0; install the same on both"
    with pytest.raises(RunError, match=words):
        old.estimate(SHORT)
    store = runs.create(SHORT)
    old.start(store)
    assert in_state(store, "failed").message.startswith("the node ")
    wait_for(lambda: not old.is_alive(store.folder))
    old.close()


@pytest.mark.nightly
def test_a_node_that_dies_interrupts_its_run_which_another_takes_up(runner: RayRunner, gated) -> None:
    store, gate = gated(SHORT)  # the last test: the cluster has one node less after it
    runner.start(store)
    gate.let(15)
    wait_for(lambda: store.status().step == 15)
    before = stored_curve(store)
    os.kill(node_of(store), signal.SIGKILL)
    assert "Ray says: " in in_state(store, "interrupted").message
    assert not runner.is_alive(store.folder)
    gate.open()
    runner.ask(store, "resume")
    in_state(store, "finished")
    assert stored_curve(store)[: len(before)] == before
    assert stored_curve(store) == own_curve(SHORT)
    assert [frame.step for frame in store.frames()] == store.facts()["frames_planned"]
    assert json.loads((store.folder / "run.json").read_text())["id"] == store.id
