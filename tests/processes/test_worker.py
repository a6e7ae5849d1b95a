"""Runs in processes of their own: killed, stopped, paused, queued; nothing is lost, and the curve is the same."""

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.tiny_runs import SPEC, called, own_curve, stored_curve, wait_for
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue.slots import SLOTS
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.folder import is_held

SLOW = replace(SPEC, name="slow", training=replace(SPEC.training, epochs=8), frames=8)
LONG = replace(SPEC, name="slow", training=replace(SPEC.training, epochs=100))


@pytest.fixture
def runs(tmp_path):
    return RunList(tmp_path)


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


def in_state(store, *states):
    return wait_for(lambda: store.status() if store.status().state in states else None)


def test_a_killed_run_goes_on_to_the_very_same_curve(runs, call):
    store = runs.create(SLOW)
    first = call(store)
    wait_for(lambda: store.status().step >= 10)
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    status = store.status()
    assert (status.state, status.alive) == ("interrupted", False)
    assert "the worker ended without a word" in status.message
    before, frames, layouts = stored_curve(store), store.frames(), store.layouts()
    vectors = [store.embeddings(frame.number) for frame in frames]
    assert len(before) >= 10
    assert frames[-1].step <= before[-1][0] < 24
    second = call(store)
    second.join(60)
    assert store.status().state == "finished"
    assert stored_curve(store) == own_curve(SLOW)
    assert stored_curve(store)[: len(before)] == before
    assert [frame.number for frame in store.frames()] == list(range(8))
    for frame, vector in zip(frames, vectors, strict=True):
        np.testing.assert_array_equal(store.embeddings(frame.number), vector)
    for old, new in zip(layouts, store.layouts(), strict=False):
        np.testing.assert_array_equal(old.xy, new.xy)
    assert len(store.layouts()) == 16
    assert (np.diff(store.curves().seconds) > 0).all()


def test_two_readers_see_a_live_run_grow_and_never_disturb_it(runs, call):
    store = runs.create(SLOW)
    call(store)
    in_state(store, "running")
    other, seen = runs.open(store.id), 0
    while (status := store.status()).state != "finished":
        steps = other.curves(after=seen).step.tolist()
        assert steps == list(range(seen + 1, seen + 1 + len(steps)))
        seen += len(steps)
        assert status.state in ("running", "finished")
        for frame in other.frames():
            assert len(other.layouts(after=frame.number - 1)) >= 2, "a frame is published with its layouts"
        time.sleep(0.01)
    assert stored_curve(store) == own_curve(SLOW)


def asked(store, request, state):
    """Ask for something, and return how long it took until readers saw it."""
    started = time.monotonic()
    store.ask(request)
    in_state(store, state)
    return time.monotonic() - started


def test_a_run_is_paused_resumed_and_stopped_within_a_second(runs, call):
    store = runs.create(LONG)
    process = call(store)
    wait_for(lambda: store.status().step >= 3)
    assert asked(store, "pause", "paused") < 1.0
    time.sleep(0.2)
    paused = store.status().step
    time.sleep(0.2)
    assert store.status().step == paused, "a paused run takes no step"
    assert asked(store, "resume", "running") < 1.0
    wait_for(lambda: store.status().step > paused)
    assert asked(store, "stop", "stopped") < 1.0
    process.join(60)
    status = store.status()
    assert (status.state, status.alive, process.exitcode) == ("stopped", False, 0)
    assert stored_curve(store) == own_curve(LONG)[: status.step]
    assert (store.folder / "bundle" / "card.md").is_file()
    with pytest.raises(RunError, match="has no worker that could stop; it is stopped"):
        store.ask("stop")


def test_sigterm_stops_with_everything_saved_and_the_run_can_go_on(runs, call):
    store = runs.create(SLOW)
    process = call(store)
    wait_for(lambda: store.status().step >= 5)
    os.kill(process.pid, signal.SIGTERM)
    process.join(60)
    assert (store.status().state, process.exitcode) == ("stopped", 0)
    taken = store.status().step
    assert taken == len(stored_curve(store))
    call(store).join(60)
    assert store.status().state == "finished"
    assert stored_curve(store) == own_curve(SLOW)


def test_a_run_that_finds_no_slot_waits_without_a_process(runs, call):
    first, second = runs.create(LONG), runs.create(SLOW)
    call(first, most_runs=1)
    in_state(first, "running")
    waiting = call(second, most_runs=1)
    waiting.join(60)
    assert waiting.exitcode == 0
    status = second.status()
    assert (status.state, status.queue_place, status.alive) == ("queued", 1, False)
    assert asked(second, "stop", "stopped") < 1.0
    assert second.status().queue_place == 0


def test_a_pause_beyond_the_bound_lets_its_process_go_and_is_shown_as_paused(runs, call):
    stores = [runs.create(SLOW) for _ in range(2)]
    for store in stores:
        process = call(store, most_pauses=1)
        wait_for(lambda store=store: store.status().step >= 3)
        assert asked(store, "pause", "paused") < 1.0
        wait_for(lambda: is_held(runs.root / SLOTS / "pause0.lock"))
    process.join(60)
    assert [store.status().alive for store in stores] == [True, False]
    assert [store.status().state for store in stores] == ["paused", "paused"]
    assert {store.id for store in runs.live()} == {store.id for store in stores}
    call(stores[1]).join(60)
    assert stores[1].status().state == "finished"
    assert stored_curve(stores[1]) == own_curve(SLOW)
    assert asked(stores[0], "stop", "stopped") < 1.0


def test_a_paused_run_whose_process_is_killed_is_interrupted(runs, call):
    store = runs.create(LONG)
    process = call(store)
    wait_for(lambda: store.status().step >= 3)
    asked(store, "pause", "paused")
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert store.status().state == "interrupted"


def test_a_second_worker_for_the_same_run_is_refused(runs, call, monkeypatch):
    from transformer_core.training.runs.worker import session

    store = runs.create(LONG)
    call(store)
    in_state(store, "running")
    monkeypatch.setattr(session, "SECONDS_TO_LET_GO", 0.05)
    with pytest.raises(RunError, match=r"worker\.lock is held by another process"):
        session.Session(store, lambda *_: None, lambda *_: None)
