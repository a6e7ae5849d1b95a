"""The launcher: warm starts, estimates, runs that outlive their server, and refusals in words."""

import os
import signal
import sys
import threading
from dataclasses import replace

import pytest

from tests.helpers.tiny_runs import (
    COMMAND,
    SPEC,
    WORKERS,
    Gate,
    in_state,
    own_curve,
    stored_curve,
    wait_for,
)
from transformer_core.training.runs import queue as slots
from transformer_core.training.runs.errors import FULL, RunError
from transformer_core.training.runs.launcher import Launcher, Standby
from transformer_core.training.runs.run_list import Bounds, RunList
from transformer_core.training.runs.store.database import worker_of

SHORT = replace(SPEC, training=replace(SPEC.training, epochs=8))
LONG = replace(SPEC, training=replace(SPEC.training, epochs=100))
QUEUED = 16


@pytest.fixture
def launcher(workers):
    """A launcher of workers that start quickly."""
    one = Launcher(COMMAND)
    yield one
    one.close()


@pytest.fixture
def one_at_a_time(launcher, monkeypatch):
    """A launcher; one run computes at a time."""
    monkeypatch.setenv(slots.MOST_RUNS, "1")
    return launcher


def ready(launcher):
    launcher.warm()
    return wait_for(lambda: launcher._standby.ready.is_set() and launcher._standby)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def switching_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(n, do):
    """Do the same in n threads that begin at once; return what each ended with, an error or what it returned."""
    gate, outcomes = threading.Barrier(n), []

    def take_part():
        gate.wait()
        try:
            outcomes.append(do())
        except RunError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=take_part) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_the_worker_that_stood_by_and_estimated_has_the_run_when_start_returns(launcher, gated):
    (store, gate), worker = gated(SHORT), ready(launcher)
    launcher.estimate(SHORT)
    launcher.start(store)
    assert store.status().alive
    assert worker_of(store.folder) == worker._process.pid
    assert worker is not launcher._standby
    gate.open()
    in_state(store, "finished")


def serve(folders, pids):
    """Be a server that starts runs, of which one computes at a time, and has the next worker stand by."""
    os.environ[slots.MOST_RUNS] = "1"
    launcher = Launcher(COMMAND)
    for folder in folders:
        launcher.start(RunList(folder.parent).open(folder.name))
    launcher.warm()
    pids.put(launcher._standby._process.pid)
    signal.pause()


@pytest.mark.nightly
def test_runs_outlive_a_killed_server_one_after_the_other_and_a_worker_without_a_run_does_not(gated):
    (first, gate), pids = gated(SHORT), WORKERS.SimpleQueue()
    stores = [first, *(RunList(first.folder.parent).create(SHORT) for _ in range(2))]
    server = WORKERS.Process(target=serve, args=([store.folder for store in stores], pids))
    server.start()
    standby = pids.get()
    os.kill(server.pid, signal.SIGKILL)
    server.join()
    gate.open()
    for store in stores:
        in_state(store, "finished")
        assert stored_curve(store) == own_curve(SHORT)
    wait_for(lambda: not is_running(standby))


def test_a_worker_that_cannot_take_a_run_says_why_and_leaves_no_mark(tmp_path):
    answers = """echo '{"ready": true}'; read line; echo '{"error": "it is damaged"}'; read line"""
    launcher, store = Launcher(("/bin/sh", "-c", answers)), RunList(tmp_path).create(SPEC)
    ready(launcher)
    with pytest.raises(RunError, match=r"^it is damaged$"):
        launcher.start(store)
    assert slots.Queue(tmp_path).runs() == []
    assert store.status().message == "the run was never started. Its last lines: it is damaged"
    launcher.close()


LIMITED = (
    "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000));"
    "runpy.run_module('tests.helpers.tiny_runs', run_name='__main__')"
)


@pytest.mark.nightly
def test_a_worker_whose_disk_takes_no_more_says_so(tmp_path):
    wide = replace(SPEC, model=replace(SPEC.model, d_model=128, d_ff=512))  # weights of more than 300,000 bytes
    store, launcher = RunList(tmp_path).create(wide), Launcher((sys.executable, "-c", LIMITED))
    launcher.start(store)
    status = wait_for(lambda: store.status() if store.status().state == "failed" else None)
    assert status.message == FULL
    wait_for(lambda: not store.status().alive)
    launcher.close()


def test_a_worker_that_dies_says_its_last_words(tmp_path):
    launcher = Launcher(("/bin/sh", "-c", "echo no such module in /home/me/lib/worker.py >&2"))
    with pytest.raises(RunError, match=r"the worker has died: no such module in worker\.py"):
        launcher.estimate(SPEC)
    launcher.close()
    with pytest.raises(RunError, match="the worker cannot be started: No such file"):
        Standby(("/nowhere/python",))


def test_of_many_threads_that_start_one_run_one_succeeds(tmp_path, monkeypatch, switching_often):
    runs, launcher = RunList(tmp_path), Launcher(COMMAND)
    monkeypatch.setattr(launcher, "look", lambda root: {})
    for store in (runs.create(SPEC) for _ in range(6)):
        outcomes = together(8, lambda store=store: launcher.start(store))
        state = store.status().state
        assert sorted(map(str, outcomes)) == ["None", *[f"run {store.id} was started before; it is {state}"] * 7]
        assert state == "queued"


def test_the_queue_is_bounded(tmp_path, monkeypatch):
    runs, launcher = RunList(tmp_path), Launcher(COMMAND)
    monkeypatch.setattr(launcher, "look", lambda root: {})
    monkeypatch.setattr(slots, "MOST_QUEUED", 2)
    monkeypatch.setenv(slots.MOST_RUNS, "1")
    stores = [runs.create(SPEC) for _ in range(4)]
    for store in stores[:3]:
        launcher.start(store)
    with pytest.raises(RunError, match="3 runs wait already"):
        launcher.start(stores[3])
    assert stores[3].status().message == "the run was never started"


def places(stores):
    return [store.status().queue_place for store in stores]


def test_a_run_that_waits_has_no_process_and_can_be_paused_resumed_and_deleted(one_at_a_time, workers, runs, gated):
    stores = [gated(LONG)[0] for _ in range(3)]
    for store in stores:
        one_at_a_time.start(store)
    in_state(stores[0], "running")
    assert places(stores) == [0, 1, 2]
    assert [store.status().alive for store in stores] == [True, False, False]
    assert len(workers) <= 2, "one computes, and one may stand by"
    one_at_a_time.ask(stores[1], "pause")
    assert (stores[1].status().state, places(stores)) == ("paused", [0, 0, 1])
    with pytest.raises(RunError, match="at most 1 are kept"):
        RunList(runs.root, bounds=Bounds(runs=1)).create(SPEC)
    one_at_a_time.ask(stores[1], "resume")
    assert places(stores) == [0, 2, 1]
    with pytest.raises(RunError, match="stop it before deleting it"):
        runs.delete(stores[2].id)
    runs.delete(stores[2].id, stop=True)
    assert places(stores[:2]) == [0, 1]


def test_a_worker_that_has_done_its_run_goes_on_with_those_that_wait_though_no_server_looks(one_at_a_time, gated, runs):
    (first, gate), others = gated(SHORT), [runs.create(SHORT) for _ in range(2)]
    for store in (first, *others):
        one_at_a_time.start(store)
    in_state(first, "running")
    one_at_a_time.close()
    gate.open()
    for store in (first, *others):
        in_state(store, "finished")
        assert stored_curve(store) == own_curve(SHORT)


def test_a_worker_that_is_told_to_end_does_not_go_on_with_the_next(one_at_a_time, workers, gated, runs):
    (first, gate), second = gated(LONG), runs.create(SHORT)
    one_at_a_time.start(first)
    one_at_a_time.start(second)
    gate.let(3)
    wait_for(lambda: first.status().step == 3)
    one_at_a_time.close()
    os.kill(worker_of(first.folder), signal.SIGTERM)
    gate.open()
    workers[0].wait()
    assert (first.status().state, second.status().state) == ("stopped", "queued")


def test_what_waited_when_the_last_server_ended_is_started_by_the_next(one_at_a_time, runs):
    store = runs.create(SHORT)
    slots.Queue(runs.root).join(store.id)
    assert store.status().state == "queued"
    one_at_a_time.look(runs.root)
    in_state(store, "finished")


def test_of_many_starts_at_once_no_accepted_run_is_ever_shown_as_interrupted(one_at_a_time, tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "MOST_QUEUED", QUEUED)
    runs = RunList(tmp_path, bounds=Bounds(runs=40))
    stores, seen, accepted = [runs.create(LONG) for _ in range(QUEUED + 6)], set(), []
    gates, waiting = [Gate(store.folder) for store in stores], iter(stores)

    def start():
        store = next(waiting)
        one_at_a_time.start(store)
        accepted.append(store)

    starts = threading.Thread(target=together, args=(len(stores), start))
    starts.start()
    while starts.is_alive() or "running" not in seen:
        seen |= {store.status().state for store in list(accepted)}
    assert len(accepted) == QUEUED + 1
    assert seen <= {"queued", "starting", "running"}
    assert {store.status().message for store in stores if store not in accepted} == {"the run was never started"}
    for gate in gates:
        gate.open()


def test_a_worker_that_dies_while_it_starts_leaves_its_last_words_and_holds_up_nobody(one_at_a_time, runs, tmp_path):
    os.mkfifo(tmp_path / "dies")
    dying = Launcher(("/bin/sh", "-c", f"read line < {tmp_path / 'dies'}; echo no such module >&2"))
    first, second = runs.create(SPEC), runs.create(SPEC)
    dying.start(first)
    assert first.status().state == "starting"
    dying.close()
    one_at_a_time.start(second)
    assert second.status().state == "queued"
    (tmp_path / "dies").write_text("now\n")
    assert in_state(first, "interrupted").message.endswith("the worker has died: no such module")
    in_state(second, "finished")
