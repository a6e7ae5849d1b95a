"""The queue: as many at once as there are slots, the rest in order, and no place is held by the dead."""

import pytest

from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import slots
from transformer_core.training.runs.queue.slots import MOST_RUNS, Queue, most_runs
from transformer_core.training.runs.store.folder import LOCK, hold, is_held


@pytest.fixture
def alive(tmp_path, monkeypatch):
    """Runs with a worker each, by name, and their locks; two may compute."""
    monkeypatch.setenv(MOST_RUNS, "2")
    locks = {}
    for name in "abcdefg":
        (tmp_path / name).mkdir()
        locks[name] = hold(tmp_path / name / LOCK)
    yield locks
    for lock in locks.values():
        lock.release()


def test_slots_go_to_the_first_and_then_to_who_waits_longest(tmp_path, alive):
    queue = Queue(tmp_path)
    for name in "abcd":
        queue.join(name)
    assert queue.take_slot("c") == 1
    first, second = queue.take_slot("b"), queue.take_slot("a")
    assert first.is_locked
    assert second.is_locked
    assert (queue.take_slot("c"), queue.take_slot("d")) == (1, 2)
    queue.join("c")
    assert queue.take_slot("c") == 1, "who waits keeps the place"
    queue.leave("c")
    assert queue.take_slot("d") == 1
    first.release()
    third = queue.take_slot("d")
    assert third.is_locked
    queue.join("e")
    assert queue.take_slot("d") == 2, "a run that is not in the queue goes to its end"
    second.release()
    third.release()


def test_the_dead_lose_their_place(tmp_path, alive):
    queue = Queue(tmp_path)
    taken = []
    for name in "ab":
        queue.join(name)
        taken.append(queue.take_slot(name))
    for name in "cd":
        queue.join(name)
    assert queue.take_slot("d") == 2
    alive["c"].release()
    assert queue.take_slot("d") == 1
    for slot in taken:
        slot.release()


def test_the_queue_has_a_bound_that_a_worker_under_way_may_pass(tmp_path, alive, monkeypatch):
    monkeypatch.setattr(slots, "MOST_QUEUED", 2)
    queue = Queue(tmp_path)
    for name in "abcd":
        queue.join(name)
    with pytest.raises(RunError, match="4 runs wait already, and no more may"):
        queue.join("e")
    assert queue.take_slot("f") == 3


def test_the_number_of_slots_is_set_or_follows_from_the_processors(monkeypatch):
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
