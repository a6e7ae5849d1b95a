"""The launcher: warm starts, estimates, runs that outlive their server, and refusals in words."""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.tiny_runs import BAD_SEED, COMMAND, SPEC, WORKERS, own_curve, stored_curve, wait_for
from transformer_core.training.runs.errors import FULL, RunError
from transformer_core.training.runs.queue import slots
from transformer_core.training.runs.queue.launcher import Launcher, Standby
from transformer_core.training.runs.run_list import Bounds, RunList

SLOW = replace(SPEC, name="slow", training=replace(SPEC.training, epochs=8))


@pytest.fixture(scope="module")
def launcher():
    launcher = Launcher(COMMAND)
    launcher.warm()
    yield launcher
    launcher.close()


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


def test_an_estimate_is_measured_and_the_run_then_starts_at_once(launcher, tmp_path):
    store, worker = RunList(tmp_path).create(SLOW), ready(launcher)
    with pytest.raises(RunError, match=r"^there is nothing to learn from$"):
        launcher.estimate(replace(SLOW, training=replace(SLOW.training, seed=BAD_SEED)))
    estimate = launcher.estimate(SLOW)
    assert (estimate.steps, estimate.frames) == (24, 5)
    assert 0.03 <= estimate.seconds_a_step < 1.0
    assert estimate.seconds == pytest.approx(24 * estimate.seconds_a_step + 5 * estimate.seconds_a_frame)
    started = time.monotonic()
    launcher.start(store)
    assert store.status().alive, "the worker has the run when start returns"
    wait_for(lambda: store.curves().step.size)
    assert time.monotonic() - started < 3.0
    assert worker is not launcher._standby
    with pytest.raises(RunError, match="was started before; it is"):
        launcher.start(store)
    with pytest.raises(RunError, match="cannot be resumed; it is"):
        launcher.resume(store)
    wait_for(lambda: store.status().state == "finished")
    assert stored_curve(store) == own_curve(SLOW)
    with pytest.raises(RunError, match="cannot be resumed; it is finished"):
        launcher.resume(store)


def serve(folders, pids, most_runs):
    """Be a server that starts runs, has the next worker stand by, and waits for its end."""
    os.environ[slots.MOST_RUNS] = str(most_runs)
    launcher = Launcher(COMMAND)
    for folder in folders:
        launcher.start(RunList(folder.parent).open(folder.name))
    launcher.warm()
    pids.put(launcher._standby._process.pid)
    time.sleep(600)


def test_a_run_outlives_its_server_and_a_worker_without_a_run_does_not(tmp_path):
    store, pids = RunList(tmp_path).create(SLOW), WORKERS.SimpleQueue()
    server = WORKERS.Process(target=serve, args=([store.folder], pids, 2))
    server.start()
    standby = pids.get()
    os.kill(server.pid, signal.SIGKILL)
    server.join()
    wait_for(lambda: store.status().state == "finished")
    assert stored_curve(store) == own_curve(SLOW)
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


LONG = replace(SLOW, training=replace(SPEC.training, epochs=100))


@pytest.fixture
def one_at_a_time(tmp_path, monkeypatch):
    """A list of runs of which one computes at a time, and a launcher; nothing is left running after the test."""
    monkeypatch.setenv(slots.MOST_RUNS, "1")
    runs, launcher = RunList(tmp_path), Launcher(COMMAND)
    yield runs, launcher
    launcher.close()
    for store in reversed(runs.live()):
        runs.delete(store.id, stop=True)


def in_state(store, *states):
    return wait_for(lambda: store.status() if store.status().state in states else None)


def places(stores):
    return [store.status().queue_place for store in stores]


def test_runs_wait_in_the_order_of_their_start_whoever_is_killed_stopped_or_paused(one_at_a_time):
    runs, launcher = one_at_a_time
    stores = [runs.create(LONG) for _ in range(4)]
    for store in stores:
        launcher.start(store)
    wait_for(lambda: [store.status().state for store in stores] == ["running", "queued", "queued", "queued"])
    assert places(stores) == [0, 1, 2, 3]
    stores[2].ask("stop")
    assert stores[2].status().state == "stopped"
    assert places(stores) == [0, 1, 0, 2]
    os.kill(wait_for(stores[0].worker), signal.SIGKILL)
    in_state(stores[1], "running")
    assert places(stores) == [0, 0, 0, 1]
    stores[1].ask("pause")
    in_state(stores[3], "running")
    assert stores[1].status().state == "paused", "a paused run gives its slot to the next"
    launcher.resume(stores[1])
    assert in_state(stores[1], "queued").queue_place == 1
    wait_for(lambda: not stores[1].status().alive)
    stores[3].ask("stop")
    in_state(stores[1], "running")
    assert stores[0].status().state == "interrupted"


def processes_with(variable):
    """Return how many processes have this in their environment from their start."""
    found = 0
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found += variable.encode() in environ.read_bytes()
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc to count processes by")
def test_a_run_that_waits_has_no_process(one_at_a_time, monkeypatch):
    runs, launcher = one_at_a_time
    monkeypatch.setenv("VITRINE_RUNS", str(runs.root))
    stores = [runs.create(LONG) for _ in range(9)]
    for store in stores:
        launcher.start(store)
    in_state(stores[0], "running")
    assert places(stores) == [0, *range(1, 9)]
    assert processes_with(f"VITRINE_RUNS={runs.root}") <= 2, "one computes, and one may stand by"


def test_a_run_that_waits_can_be_paused_resumed_and_deleted(one_at_a_time):
    runs, launcher = one_at_a_time
    stores = [runs.create(LONG) for _ in range(3)]
    for store in stores:
        launcher.start(store)
    in_state(stores[0], "running")
    stores[1].ask("pause")
    assert (stores[1].status().state, places(stores)) == ("paused", [0, 0, 1])
    with pytest.raises(RunError, match="at most 1 are kept"):
        RunList(runs.root, bounds=Bounds(runs=1)).create(SPEC)
    launcher.resume(stores[1])
    assert places(stores) == [0, 2, 1]
    with pytest.raises(RunError, match="stop it before deleting it"):
        runs.delete(stores[2].id)
    runs.delete(stores[2].id, stop=True)
    assert places(stores[:2]) == [0, 1]


def test_a_worker_that_has_done_its_run_goes_on_with_those_that_wait_though_the_server_is_killed(one_at_a_time):
    runs, _ = one_at_a_time
    stores, pids = [runs.create(SLOW) for _ in range(3)], WORKERS.SimpleQueue()
    server = WORKERS.Process(target=serve, args=([store.folder for store in stores], pids, 1))
    server.start()
    pids.get()
    os.kill(server.pid, signal.SIGKILL)
    server.join()
    for store in stores:
        in_state(store, "finished")
        assert stored_curve(store) == own_curve(SLOW)


def test_a_worker_that_is_told_to_end_does_not_go_on_with_the_next(one_at_a_time):
    runs, launcher = one_at_a_time
    first, second = runs.create(LONG), runs.create(SLOW)
    launcher.start(first)
    launcher.start(second)
    wait_for(lambda: first.status().step >= 3)
    launcher.close()
    worker = first.worker()
    os.kill(worker, signal.SIGTERM)
    wait_for(lambda: not is_running(worker))
    assert (first.status().state, second.status().state) == ("stopped", "queued")


def test_what_waited_when_the_last_server_ended_is_started_by_the_next(one_at_a_time):
    runs, launcher = one_at_a_time
    store = runs.create(SLOW)
    slots.Queue(runs.root).join(store.id)
    assert store.status().state == "queued"
    launcher.look(runs.root)
    in_state(store, "finished")


def test_of_many_starts_at_once_no_accepted_run_is_ever_shown_as_interrupted(one_at_a_time):
    runs, launcher = RunList(one_at_a_time[0].root, bounds=Bounds(runs=40)), one_at_a_time[1]
    stores, seen, accepted = [runs.create(LONG) for _ in range(22)], set(), []
    waiting = iter(stores)

    def start():
        store = next(waiting)
        launcher.start(store)
        accepted.append(store)

    threads = threading.Thread(target=together, args=(22, start))
    threads.start()
    until = time.monotonic() + 5.0
    while time.monotonic() < until:
        seen |= {store.status().state for store in list(accepted)}
    threads.join()
    assert len(accepted) == 17
    assert seen <= {"queued", "starting", "running"}
    assert {store.status().message for store in stores if store not in accepted} == {"the run was never started"}


def test_a_worker_that_dies_while_it_starts_leaves_its_last_words_and_holds_up_nobody(one_at_a_time):
    runs, sound = one_at_a_time
    dying = Launcher(("/bin/sh", "-c", "sleep 0.5; echo no such module >&2"))
    first, second = runs.create(SPEC), runs.create(SPEC)
    dying.start(first)
    assert first.status().state == "starting"
    dying.close()
    sound.start(second)
    assert in_state(first, "interrupted").message.endswith("the worker has died: no such module")
    in_state(second, "finished")
