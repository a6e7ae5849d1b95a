"""What every Runner does: one suite for all ways to compute runs, stated in the interface's own words.

Another way is one more class here: its runner, and how a worker of it is killed.
"""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.ray_nodes import cluster
from tests.helpers.tiny_runs import BAD_SEED, COMMAND, SPEC, in_state, own_curve, stored_curve, wait_for
from transformer_core.training.runs.cluster.placed import placed
from transformer_core.training.runs.cluster.ray_cluster import ADDRESS
from transformer_core.training.runs.cluster.ray_runner import RayRunner
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.launcher import Launcher
from transformer_core.training.runs.queue import MOST_RUNS
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.runner import Runner
from transformer_core.training.runs.store.database import worker_of
from transformer_core.training.runs.store.run_store import RunStore

BRIDGE = (sys.executable, "-m", "tests.helpers.ray_bridge")
RAY_AT_NIGHT = pytest.mark.parametrize(
    "computing", ["processes", pytest.param("ray", marks=pytest.mark.nightly)], indirect=True
)
SHORT = replace(SPEC, training=replace(SPEC.training, epochs=8))  # 24 steps, 5 frames
LONG = replace(SPEC, training=replace(SPEC.training, epochs=100))


class Processes:
    """This machine's processes, of which one computes at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(MOST_RUNS, "1")
        self.runner: Runner = Launcher(COMMAND)

    def kill(self, store: RunStore) -> None:
        """Kill what computes a run."""
        os.kill(wait_for(lambda: worker_of(store.folder)), signal.SIGKILL)


class OnRay:
    """A Ray cluster of one processor, on which one computes at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
        monkeypatch.setenv(ADDRESS, address)
        self.runner: Runner = RayRunner(BRIDGE)

    def kill(self, store: RunStore) -> None:
        """Kill what computes a run, on its node."""
        note = wait_for(lambda: (note := placed(store.folder)) and note.pid and note)
        os.kill(int(note.pid), signal.SIGKILL)


@pytest.fixture(scope="module")
def one_processor():
    """The address of a cluster."""
    pytest.importorskip("ray", reason="ray is not installed (requirements-ray.txt)")
    with cluster(1) as address:
        yield address


@pytest.fixture
def computing(request: pytest.FixtureRequest, workers, monkeypatch: pytest.MonkeyPatch):
    """A way to compute runs."""
    if request.param == "ray":
        made = OnRay(monkeypatch, request.getfixturevalue("one_processor"))
    else:
        made = Processes(monkeypatch)
    yield made
    made.runner.close()


@pytest.fixture
def runs(computing, tmp_path: Path) -> RunList:
    """An empty list of runs that are computed this way."""
    return RunList(tmp_path, computes=computing.runner)


@RAY_AT_NIGHT
def test_an_estimate_is_measured_and_what_cannot_be_made_is_refused(computing) -> None:
    with pytest.raises(RunError, match=r"^there is nothing to learn from$"):
        computing.runner.estimate(replace(SHORT, training=replace(SHORT.training, seed=BAD_SEED)))
    estimate = computing.runner.estimate(SHORT)
    assert (estimate.steps, estimate.frames) == (24, 5)
    assert estimate.seconds_a_step > 0
    assert estimate.seconds == pytest.approx(24 * estimate.seconds_a_step + 5 * estimate.seconds_a_frame)


@pytest.mark.parametrize("computing", ["processes", "ray"], indirect=True)
def test_a_run_is_paused_resumed_killed_and_taken_up_and_has_the_curve_of_a_plain_loop(computing, gated) -> None:
    runner, (store, gate) = computing.runner, gated(SHORT)
    assert not runner.is_alive(store.folder)
    runner.start(store)
    assert runner.live([store.folder]) == {store.folder}
    with pytest.raises(RunError, match="was started before; it is"):
        runner.start(store)
    in_state(store, "running")
    with pytest.raises(RunError, match="cannot be resumed; it is running"):
        runner.ask(store, "resume")
    gate.let(7)
    wait_for(lambda: store.status().step == 7)
    planned = store.facts()["frames_planned"]
    wait_for(
        lambda: [frame.step for frame in store.frames()] == [step for step in planned if step <= 7]
    )  # as they come
    runner.ask(store, "pause")
    in_state(store, "paused")
    gate.let(8)
    assert runner.is_alive(store.folder)
    wait_for(lambda: gate.left() == 15 - store.status().step)  # it may have been inside its eighth step
    assert store.status().step in (7, 8), "a paused run takes no further step"
    runner.ask(store, "resume")
    wait_for(lambda: store.status().step == 15)
    computing.kill(store)
    in_state(store, "interrupted")
    assert not runner.is_alive(store.folder)
    before = stored_curve(store)
    gate.open()
    runner.ask(store, "resume")
    in_state(store, "finished")
    wait_for(lambda: not runner.is_alive(store.folder))
    assert stored_curve(store)[: len(before)] == before
    assert stored_curve(store) == own_curve(SHORT)
    assert [frame.step for frame in store.frames()] == planned
    for request in ("pause", "stop"):
        with pytest.raises(RunError, match=f"has no worker that could {request}; it is finished"):
            runner.ask(store, request)
    with pytest.raises(RunError, match="cannot be resumed; it is finished"):
        runner.ask(store, "resume")


@RAY_AT_NIGHT
def test_a_run_that_is_stopped_takes_at_most_one_further_step_and_one_that_is_ended_is_gone(
    computing, gated, runs: RunList
) -> None:
    runner, (store, gate) = computing.runner, gated(LONG)
    runner.start(store)
    gate.let(3)
    wait_for(lambda: store.status().step == 3)
    runner.ask(store, "stop")
    in_state(store, "stopped")
    gate.open()
    wait_for(lambda: not runner.is_alive(store.folder))
    assert store.status().step in (3, 4)
    assert stored_curve(store) == own_curve(LONG)[: store.status().step]
    other, gate = gated(LONG)
    runner.start(other)
    in_state(other, "running")
    gate.open()
    runner.end(other.folder)
    assert not runner.is_alive(other.folder)
    runs.delete(other.id)
    assert [one.id for one in runs.all()] == [store.id]


def places(stores):
    return [store.status().queue_place for store in stores]


@RAY_AT_NIGHT
def test_runs_wait_in_the_order_of_their_start_whoever_is_killed_stopped_or_paused(computing, gated):
    runner = computing.runner
    stores, gates = zip(*(gated(LONG) for _ in range(4)), strict=True)
    for store in stores:
        runner.start(store)
    wait_for(lambda: [store.status().state for store in stores] == ["running", "queued", "queued", "queued"])
    assert places(stores) == [0, 1, 2, 3]
    runner.ask(stores[2], "stop")
    assert stores[2].status().state == "stopped"
    assert places(stores) == [0, 1, 0, 2]
    computing.kill(stores[0])
    in_state(stores[1], "running")
    assert places(stores) == [0, 0, 0, 1]
    runner.ask(stores[1], "pause")
    in_state(stores[1], "paused")
    gates[1].let()
    in_state(stores[3], "running")
    assert stores[1].status().state == "paused", "a paused run gives its slot to the next"
    runner.ask(stores[1], "resume")
    assert in_state(stores[1], "queued").queue_place == 1
    wait_for(lambda: not stores[1].status().alive)
    runner.ask(stores[3], "stop")
    in_state(stores[3], "stopped")
    gates[3].let()
    in_state(stores[1], "running")
    assert stores[0].status().state == "interrupted"
