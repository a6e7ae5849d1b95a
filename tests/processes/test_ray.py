"""Runs on a real Ray cluster of two nodes: nodes that die, servers that restart, many at once, and what is refused."""

import itertools
import json
import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
import torch

from pages.kit import asking
from pages.kit.asking import ask_away, forget_answers
from pages.kit.heavy import ON_CLUSTER, Job, Pool
from pages.kit.models import open_bundle
from tests.helpers import heavy_work
from tests.helpers.pages import same
from tests.helpers.ray_nodes import cluster
from tests.helpers.tiny_runs import SPEC, WORKERS, Gate, in_state, own_curve, stored_curve, wait_for
from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.attention.head_ablation import head_effects
from transformer_core.prompt import Prompt
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


def answer(function, **arguments):  # type: ignore[no-untyped-def]
    """Wait for an answer as a page does, which looks again and again."""
    asked = partial(ask_away, function, "me here", **arguments)
    return wait_for(lambda: (job := asked()).done() and job).result()


@pytest.fixture
def pool(two_nodes: str, monkeypatch: pytest.MonkeyPatch):
    """A pool whose relay has found the cluster."""
    monkeypatch.setenv(ADDRESS, two_nodes)
    made, numbers = Pool(1, ON_CLUSTER), itertools.count()
    monkeypatch.setattr(asking, "pool", lambda: made)
    wait_for(lambda: answer(heavy_work.placed, number=next(numbers)), 240)  # a fresh node unpacks and imports first
    yield made
    made.close()
    forget_answers()


@pytest.mark.nightly
def test_a_heavy_question_is_answered_by_a_node_as_here(pool: Pool) -> None:
    bundle, other = open_bundle("sentiment"), open_bundle("gpt-char")
    prompt = Prompt(bundle, "A slow but lovely film", bundle.config.max_len)
    found = answer(head_effects, prompt=prompt)
    same(arrays_of(head_effects(prompt=prompt)), arrays_of(found))
    found = answer(heavy_work.of_model, bundle=bundle, others=(other,))
    assert found.values.tolist() == [bundle.n_parameters, other.n_parameters]
    found = answer(heavy_work.drawn, count=5)
    np.testing.assert_array_equal(found.values, torch.rand(5, generator=torch.Generator()).numpy())
    with pytest.raises(ValueError, match="value=3 must be something else"):
        answer(heavy_work.wrong, value=3)


@pytest.mark.nightly
def test_what_nobody_waits_for_ends_on_its_node_and_what_a_node_loses_the_relay_computes(pool: Pool, tmp_path) -> None:
    assert answer(heavy_work.dying_there, number=0)
    gate = Gate(tmp_path / uuid4().hex)
    asked = partial(ask_away, heavy_work.stepped, "me here", name="", steps=9, gate=str(gate.folder))
    job = asked()
    assert isinstance(job, Job)
    gate.let(4)
    wait_for(lambda: asked() is job and job.steps and gate.left() == 0)
    assert job.steps[1] == 9
    (there,) = gate.readers()
    assert there not in {process._process.pid for process in pool._processes}
    wait_for(lambda: job.cancelled())
    wait_for(lambda: not gate.readers())
    gate.open()


@pytest.mark.nightly
def test_where_runs_have_all_processors_the_relay_computes(pool: Pool, runner: RayRunner, gated) -> None:
    both = [gated(SHORT), gated(SHORT)]
    for store, gate in both:
        runner.start(store)
        gate.let(1)
        wait_for(lambda store=store: store.status().step == 1)
    assert answer(heavy_work.placed, number=-1) is False
    for store, gate in both:  # what nobody takes over keeps its processor
        gate.open()
        in_state(store, "finished")
        wait_for(lambda store=store: placed(store.folder) is None)


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
