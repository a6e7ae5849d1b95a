"""The queue: as many at once as there are slots, the rest wait as tickets in order, and nobody's death stops it."""

import time

import pytest

from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store import slots
from transformer_core.training.runs.store.folder import LOCK, hold, is_held
from transformer_core.training.runs.store.slots import MOST_PAUSES, MOST_RUNS, Queue, most_pauses, most_runs


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A queue of runs named a to g, of which two may compute."""
    monkeypatch.setenv(MOST_RUNS, "2")
    for name in "abcdefg":
        (tmp_path / name).mkdir()
    return Queue(tmp_path)


def places(queue, names):
    return [queue.place(name) for name in names]


def test_slots_go_to_the_first_and_then_to_who_waits_longest(queue):
    for name in "abcd":
        queue.join(name)
    assert queue.take_slot("c") is None
    first, second = queue.take_slot("b"), queue.take_slot("a")
    assert first.is_locked
    assert second.is_locked
    assert (queue.take_slot("d"), places(queue, "abcd")) == (None, [0, 0, 1, 2])
    queue.join("c")
    assert places(queue, "cd") == [1, 2], "who waits keeps the place"
    queue.leave("c")
    assert places(queue, "cd") == [0, 1]
    first.release()
    third = queue.take_slot("d")
    assert third.is_locked
    queue.join("e")
    assert queue.take_slot("d") is None
    assert queue.runs() == ["e", "d"], "a run that is not in the queue goes to its end"
    second.release()
    third.release()


def test_a_worker_is_started_for_the_first_that_wait_and_for_no_more_than_there_are_slots(queue):
    for name in "abcd":
        queue.join(name)
    claims = [queue.claim_next() for _ in range(2)]
    assert [run for run, _ in claims] == ["a", "b"]
    assert queue.claim_next() is None
    assert places(queue, "abcd") == [0, 0, 1, 2]
    slot = queue.take_slot("a")
    claims[0][1].release()
    assert queue.claim_next() is None
    claims[1][1].release()
    assert queue.claim_next()[0] == "b", "whoever was to start it died: another may"
    slot.release()


def test_a_run_whose_last_worker_still_writes_waits_for_it(queue, tmp_path):
    lock = hold(tmp_path / "a" / LOCK)
    queue.join("a")
    assert queue.claim_next() is None
    lock.release()
    assert queue.claim_next()[0] == "a"


def test_the_ticket_of_a_run_that_is_gone_holds_no_place(queue, tmp_path):
    for name in "abcd":
        queue.join(name)
    (tmp_path / "a").rmdir()
    claims = [queue.claim_next() for _ in range(2)]
    assert [run for run, _ in claims] == ["b", "c"]


def test_a_clock_set_back_changes_no_order(queue, monkeypatch):
    for name in "abc":
        queue.join(name)
    for clock in ("time", "time_ns"):
        monkeypatch.setattr(time, clock, lambda: 0)
    for name in "de":
        queue.join(name)
    assert queue.runs() == list("abcde")
    queue.leave("b")
    queue.join("b")
    assert queue.runs() == list("acdeb")


def test_the_queue_has_a_bound_that_a_worker_under_way_may_pass(queue, monkeypatch):
    monkeypatch.setattr(slots, "MOST_QUEUED", 2)
    for name in "abcd":
        queue.join(name)
    with pytest.raises(RunError, match="4 runs wait already, and no more may"):
        queue.join("e")
    assert queue.take_slot("f") is None
    assert queue.runs() == list("abcdf")


def test_what_may_not_wait_gets_no_ticket(queue):
    def refuse():
        raise RunError("it was started before")

    with pytest.raises(RunError, match="it was started before"):
        queue.join("a", refuse)
    assert queue.runs() == []


def test_a_few_paused_runs_keep_their_process_and_the_others_do_not(queue, monkeypatch):
    kept = [queue.take_pause(), queue.take_pause()]
    assert all(kept)
    assert queue.take_pause() is None
    kept[0].release()
    assert queue.take_pause() is not None
    monkeypatch.setenv(MOST_PAUSES, "0")
    assert queue.take_pause() is None
    kept[1].release()


def test_the_numbers_of_slots_and_pauses_are_set_or_follow_from_the_processors(monkeypatch):
    for cores, slots_ in ((1, 1), (2, 1), (3, 1), (8, 4)):
        monkeypatch.setattr(slots, "cores", lambda cores=cores: cores)
        monkeypatch.delenv(MOST_RUNS, raising=False)
        assert most_runs() == slots_
    monkeypatch.setenv(MOST_RUNS, "5")
    assert most_runs() == 5
    for value in ("0", "-1", "many", "65"):
        monkeypatch.setenv(MOST_RUNS, value)
        with pytest.raises(RunError, match=f"VITRINE_MOST_RUNS='{value}' must be a whole number"):
            most_runs()
    assert most_pauses() == 2
    monkeypatch.setenv(MOST_PAUSES, "-1")
    with pytest.raises(RunError, match="VITRINE_MOST_PAUSES='-1' must be a whole number from 0 to 64"):
        most_pauses()


def test_a_lock_is_seen_without_being_touched(tmp_path):
    lock = tmp_path / "a.lock"
    assert not is_held(lock)
    held = hold(lock)
    assert is_held(lock)
    assert is_held(lock)
    with pytest.raises(RunError, match=r"a\.lock is held by another process"):
        hold(lock, patience=0.05)
    held.release()
    assert not is_held(lock)
