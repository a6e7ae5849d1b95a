"""The launcher: warm starts, estimates, runs that outlive their server, and refusals in words."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace

import pytest

from tests.core.training.runs.tiny_runs import BAD_SEED, COMMAND, SPEC, WORKERS, own_curve, stored_curve, wait_for
from transformer_core.training.runs.errors import FULL, RunError
from transformer_core.training.runs.queue import slots
from transformer_core.training.runs.queue.launcher import Launcher, Standby
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.folder import LAUNCHED, was_just_launched

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


def serve(folder, pids):
    """Be a server that starts a run, has the next worker stand by, and waits for its end."""
    launcher, store = Launcher(COMMAND), RunList(folder.parent).open(folder.name)
    launcher.start(store)
    launcher.warm()
    pids.put(launcher._standby._process.pid)
    time.sleep(600)


def test_a_run_outlives_its_server_and_a_worker_without_a_run_does_not(tmp_path):
    store, pids = RunList(tmp_path).create(SLOW), WORKERS.SimpleQueue()
    server = WORKERS.Process(target=serve, args=(store.folder, pids))
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
    assert not was_just_launched(store.folder)
    assert not list((tmp_path / slots.TICKETS).glob("*-*"))
    launcher.close()


LIMITED = (
    "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000));"
    "runpy.run_module('tests.core.training.runs.tiny_runs', run_name='__main__')"
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
    monkeypatch.setattr(launcher, "_hand_over", lambda folder: None)
    for store in (runs.create(SPEC) for _ in range(6)):
        outcomes = together(8, lambda store=store: launcher.start(store))
        assert sorted(map(str, outcomes)) == ["None", *[f"run {store.id} was started before; it is starting"] * 7]
        assert store.status().state == "starting"
        os.utime(store.folder / LAUNCHED, (0, 0))
        assert store.status().state == "interrupted", "a mark that no worker followed counts for half a minute"


def test_the_queue_is_bounded(tmp_path, monkeypatch):
    runs, launcher = RunList(tmp_path), Launcher(COMMAND)
    monkeypatch.setattr(launcher, "_hand_over", lambda folder: None)
    monkeypatch.setattr(slots, "MOST_QUEUED", 2)
    monkeypatch.setenv(slots.MOST_RUNS, "1")
    stores = [runs.create(SPEC) for _ in range(4)]
    for store in stores[:3]:
        launcher.start(store)
    with pytest.raises(RunError, match="3 runs wait already"):
        launcher.start(stores[3])
    assert stores[3].status().message == "the run was never started"
