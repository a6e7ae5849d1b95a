"""Runs in processes of their own: killed, stopped, paused, queued; nothing is lost, and the curve is the same."""

import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.tiny_runs import SPEC, called, in_state, own_curve, stored_curve, wait_for
from transformer_core.training.runs import launcher as launching
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import TABLE, Queue
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.worker import session

SHORT = replace(SPEC, training=replace(SPEC.training, epochs=8), frames=8)
LONG = replace(SPEC, training=replace(SPEC.training, epochs=100))


@pytest.fixture
def call():
    """Call workers that are gone after the test."""
    processes = []

    def started(store, **bounds):
        processes.append(called(store, **bounds))
        return processes[-1]

    yield started
    for process in processes:
        process.kill()
        process.join()


def let(store, gate, steps):
    """Let a run take steps, and wait until readers see them; it waits for its gate before the next."""
    wanted = store.status().step + steps
    gate.let(steps)
    wait_for(lambda: store.status().step == wanted)


def pauses(runs):
    """Tell whether a run pauses and keeps its process."""
    with closing(sqlite3.connect(runs.root / TABLE)) as table:
        return bool(table.execute("SELECT COUNT(*) FROM queue WHERE slot = 'pauses'").fetchone()[0])


def test_a_killed_run_goes_on_to_the_very_same_curve(gated, call):
    store, gate = gated(SHORT)
    first = call(store)
    let(store, gate, 10)
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    status = store.status()
    assert (status.state, status.alive) == ("interrupted", False)
    assert "the worker ended without a word" in status.message
    before, frames, layouts = stored_curve(store), store.frames(), store.layouts()
    vectors = [store.embeddings(frame.number) for frame in frames]
    assert len(before) == 10
    assert frames[-1].step <= 10
    gate.open()
    second = call(store)
    second.join(60)
    assert store.status().state == "finished"
    assert stored_curve(store) == own_curve(SHORT)
    assert stored_curve(store)[: len(before)] == before
    assert [frame.number for frame in store.frames()] == list(range(8))
    for frame, vector in zip(frames, vectors, strict=True):
        np.testing.assert_array_equal(store.embeddings(frame.number), vector)
    for old, new in zip(layouts, store.layouts(), strict=False):
        np.testing.assert_array_equal(old.xy, new.xy)
    assert len(store.layouts()) == 16
    assert (np.diff(store.curves().seconds) > 0).all()


def test_readers_see_a_live_run_grow_step_by_step_and_never_disturb_it(runs, gated, call):
    store, gate = gated(SHORT)
    process, other = call(store), runs.open(store.id)
    for step in range(1, 25):
        gate.let()
        wait_for(lambda step=step: store.status().step == step)
        assert store.status().state in ("running", "finished")
        assert other.curves(after=step - 1).step.tolist() == [step]
        for frame in other.frames():
            assert len(other.layouts(after=frame.number - 1)) >= 2, "a frame is published with its layouts"
    process.join(60)
    assert store.status().state == "finished"
    assert stored_curve(store) == own_curve(SHORT)


def test_a_run_is_paused_resumed_and_stopped_after_at_most_one_further_step(runs, gated, call):
    store, gate = gated(LONG)
    process = call(store)
    let(store, gate, 3)
    wait_for(lambda: store.status().state == "running")
    runner().ask(store, "pause")
    in_state(store, "paused")
    gate.let(10)
    wait_for(lambda: pauses(runs))
    paused = store.status().step
    assert paused in (3, 4)
    assert gate.left() == 13 - paused, "a paused run takes no step"
    runner().ask(store, "resume")
    in_state(store, "running")
    wait_for(lambda: store.status().step == 13)
    runner().ask(store, "stop")
    in_state(store, "stopped")
    gate.let(10)
    process.join(60)
    status = store.status()
    assert (status.state, status.alive, process.exitcode) == ("stopped", False, 0)
    assert status.step in (13, 14)
    assert gate.left() == 23 - status.step
    assert stored_curve(store) == own_curve(LONG)[: status.step]
    assert (store.folder / "bundle" / "card.md").is_file()
    with pytest.raises(RunError, match="has no worker that could stop; it is stopped"):
        runner().ask(store, "stop")


def test_sigterm_stops_with_everything_saved_and_the_run_can_go_on(gated, call):
    store, gate = gated(SHORT)
    process = call(store)
    let(store, gate, 5)
    os.kill(process.pid, signal.SIGTERM)
    gate.let(10)
    process.join(60)
    assert (store.status().state, process.exitcode) == ("stopped", 0)
    taken = store.status().step
    assert taken in (5, 6)
    assert taken == len(stored_curve(store))
    gate.open()
    call(store).join(60)
    assert store.status().state == "finished"
    assert stored_curve(store) == own_curve(SHORT)


def test_a_run_that_finds_no_slot_waits_without_a_process(runs, gated, call):
    first, second = gated(LONG)[0], runs.create(SHORT)
    call(first, most_runs=1)
    in_state(first, "running")
    waiting = call(second, most_runs=1)
    waiting.join(60)
    assert waiting.exitcode == 0
    status = second.status()
    assert (status.state, status.queue_place, status.alive) == ("queued", 1, False)
    runner().ask(second, "stop")
    assert (second.status().state, second.status().queue_place) == ("stopped", 0)


def test_a_pause_beyond_the_bound_lets_its_process_go_and_is_shown_as_paused(runs, gated, call):
    stores, processes = [], []
    for _ in range(2):
        store, gate = gated(SHORT)
        processes.append(call(store, most_pauses=1))
        let(store, gate, 3)
        runner().ask(store, "pause")
        in_state(store, "paused")
        gate.open()
        wait_for(lambda: pauses(runs))
        stores.append(store)
    processes[1].join(60)
    assert [store.status().alive for store in stores] == [True, False]
    assert [store.status().state for store in stores] == ["paused", "paused"]
    assert {store.id for store in runs.live()} == {store.id for store in stores}
    call(stores[1]).join(60)
    assert stores[1].status().state == "finished"
    assert stored_curve(stores[1]) == own_curve(SHORT)
    runner().ask(stores[0], "stop")
    processes[0].join(60)
    assert stores[0].status().state == "stopped"


def test_a_paused_run_whose_process_is_killed_is_interrupted(gated, call):
    store, gate = gated(LONG)
    process = call(store)
    let(store, gate, 3)
    runner().ask(store, "pause")
    in_state(store, "paused")
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert store.status().state == "interrupted"


def test_a_second_worker_for_the_same_run_is_refused(gated, call, monkeypatch):
    store, _ = gated(LONG)
    call(store)
    in_state(store, "running")
    monkeypatch.setattr(session, "SECONDS_TO_LET_GO", 0.05)
    with pytest.raises(RunError, match=r"worker\.lock is held by another process"):
        session.Session(store, lambda *_: None, lambda *_: None)


def test_a_run_with_a_worker_is_deleted_only_when_it_may_be_stopped(runs, gated, call, monkeypatch):
    monkeypatch.setattr(launching, "PATIENCE_WITH_STOP", 60.0)
    store, gate = gated(LONG)
    process = call(store)
    let(store, gate, 2)
    with pytest.raises(RunError, match="has a worker, or waits for one; stop it"):
        runs.delete(store.id)
    ask = Queue.ask

    def heard(queue, run, request):
        ask(queue, run, request)
        in_state(store, "stopped")
        gate.let()

    monkeypatch.setattr(Queue, "ask", heard)
    runs.delete(store.id, stop=True)
    process.join(60)
    assert process.exitcode == 0, "it was asked, and not killed"
    assert not store.folder.exists()
    assert runs.all() == []


def test_a_worker_that_does_not_listen_is_killed_before_its_run_is_deleted(runs, gated, call, monkeypatch):
    store, gate = gated(LONG)
    process, kill = call(store), os.kill
    let(store, gate, 2)
    kill(process.pid, signal.SIGSTOP)

    def patient(worker, how):
        monkeypatch.setattr(launching, "PATIENCE_WITH_STOP", 60.0)
        kill(worker, how)

    monkeypatch.setattr(launching, "PATIENCE_WITH_STOP", 0.0)
    monkeypatch.setattr(launching.os, "kill", patient)
    runs.delete(store.id, stop=True)
    process.join(60)
    assert process.exitcode == -9
    assert not store.folder.exists()
