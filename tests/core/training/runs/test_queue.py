"""The queue: as many at once as there are slots, the rest wait in order, and nobody's death stops it."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from transformer_core.training.runs import queue as slots
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import MOST_PAUSES, MOST_RUNS, Queue, damaged_queues, most_pauses, most_runs
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.folder import ABOUT, LOCK, LOG, SPEC, hold, is_held


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A queue of runs named a to g, of which two may compute."""
    monkeypatch.setenv(MOST_RUNS, "2")
    for name in "abcdefg":
        (tmp_path / name).mkdir()
    return Queue(tmp_path)


@pytest.fixture
def held(tmp_path):
    """Hold runs, as their workers do."""
    locks = {}

    def held(*names):
        locks.update({name: hold(tmp_path / name / LOCK) for name in names})
        return [locks[name] for name in names]

    return held


def places(queue, names):
    return [queue.place(name) for name in names]


def test_slots_go_to_the_first_and_then_to_who_waits_longest_and_end_with_their_worker(queue, held):
    for name in "abcd":
        queue.join(name)
    first, _ = held("a", "b")
    assert not queue.take_slot("c")
    assert queue.take_slot("b")
    assert queue.take_slot("a")
    assert (queue.take_slot("d"), places(queue, "abcd")) == (False, [0, 0, 1, 2])
    queue.join("c")
    assert places(queue, "cd") == [1, 2], "who waits keeps the place"
    queue.leave("c")
    assert places(queue, "cd") == [0, 1]
    first.release()
    assert queue.take_slot("d")
    held("d")
    queue.join("e")
    assert not queue.take_slot("c")
    assert queue.runs() == ["e", "c"], "a run that is not in the queue goes to its end"


def test_a_worker_is_started_for_the_first_that_wait_and_for_no_more_than_there_are_slots(queue, held):
    for name in "abcd":
        queue.join(name)
    claims = [queue.claim_next() for _ in range(2)]
    assert [run for run, _ in claims] == ["a", "b"]
    assert queue.claim_next() is None
    assert places(queue, "abcd") == [0, 0, 1, 2]
    held("a")
    assert queue.take_slot("a")
    claims[0][1].release()
    assert queue.claim_next() is None
    claims[1][1].release()
    assert queue.claim_next()[0] == "b", "whoever was to start it died: another may"


def test_a_run_whose_last_worker_still_writes_waits_for_it(queue, tmp_path):
    lock = hold(tmp_path / "a" / LOCK)
    queue.join("a")
    assert queue.claim_next() is None
    lock.release()
    assert queue.claim_next()[0] == "a"


def test_a_run_that_is_gone_holds_no_place(queue, tmp_path):
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
    assert not queue.take_slot("f")
    assert queue.runs() == list("abcdf")


def test_what_may_not_wait_gets_no_place(queue):
    def refuse():
        raise RunError("it was started before")

    with pytest.raises(RunError, match="it was started before"):
        queue.join("a", refuse)
    assert queue.runs() == []


def test_a_few_paused_runs_keep_their_process_and_the_others_do_not(queue, held, monkeypatch):
    first, *_ = held(*"abcd")
    assert [queue.take_slot("a"), queue.take_slot("b"), queue.take_slot("c")] == [True, True, False]
    assert queue.take_pause("a")
    assert queue.take_slot("c"), "a pause frees the slot"
    assert [queue.take_pause("b"), queue.take_pause("c")] == [True, False]
    first.release()
    assert queue.take_pause("c")
    monkeypatch.setenv(MOST_PAUSES, "0")
    assert not queue.take_pause("d")


def test_a_request_is_heard_once_the_last_one_counts_and_one_of_before_a_start_does_not(queue):
    queue.ask("a", "pause")
    queue.ask("a", "stop")
    assert [queue.heard("b"), queue.heard("a"), queue.heard("a")] == [None, "stop", None]
    queue.ask("a", "stop")
    queue.join("a")
    assert queue.heard("a") is None
    with pytest.raises(RunError, match="request='rest' is unknown; it must be one of pause, resume, stop"):
        queue.ask("a", "rest")


def test_what_an_earlier_version_noted_in_files_is_taken_over(queue, tmp_path):
    (tmp_path / ".queue").mkdir()
    for number, name in enumerate("cab", 1):
        (tmp_path / ".queue" / f"{number:020d}-{name}").touch()
    (tmp_path / "d" / "paused").touch()
    assert queue.runs() == list("cab")
    assert queue.live(tmp_path / name for name in "abcde") == {tmp_path / name for name in "abcd"}
    assert queue.presence("d").paused
    queue.leave("d")
    assert not Queue(tmp_path).presence("d").paused, "once"


def killed(root, rows):
    """Change the table until the process kills itself in the middle of a change."""
    queue = Queue(root)
    queue.join("a")
    with queue._turn() as table:
        table.execute("PRAGMA cache_size = 1")  # so that changes are on the disk before their end
        table.execute("UPDATE queue SET place = NULL")
        table.executemany(slots.JOIN, [(f"run {number}",) for number in range(rows)])
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("rows", [1, 2_000])
def test_a_process_killed_while_it_changes_the_table_changes_nothing_and_holds_up_nobody(queue, tmp_path, rows):
    process = multiprocessing.get_context("fork").Process(target=killed, args=(tmp_path, rows))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    queue.join("b")
    assert queue.runs() == ["a", "b"]


DAMAGES = {
    "garbage": lambda whole: b"no table at all" * 1_000,
    "empty": lambda whole: b"",
    "truncated": lambda whole: whole[: len(whole) // 2],
    "cut in its head": lambda whole: whole[:50],
    "spoilt inside": lambda whole: whole[:4_096] + b"\xff" * (len(whole) - 4_096),
}


def noted(root, made, **states):
    """Make what the folders of runs have: when they were made, and the state of those that were started."""
    for run, created in made.items():
        (root / run / SPEC).write_text("{}")
        (root / run / ABOUT).write_text(json.dumps({"created": created}))
    for run, state in states.items():
        writer = RunWriter(root / run)
        writer.set_state(state)
        writer.close()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_table_is_put_aside_and_made_again_of_the_runs_folders(queue, held, tmp_path, damage):
    noted(tmp_path, {"a": 1, "b": 2, "c": 5, "d": 4, "e": 3, "f": 6}, a="running", b="paused", e="paused", f="running")
    (tmp_path / "g" / SPEC).write_text("{}")
    (tmp_path / "g" / LOG).write_text("the worker cannot be started")
    queue.join("c")
    held("a", "b")  # f has no worker: it was killed
    spoilt = damage((tmp_path / slots.TABLE).read_bytes())
    (tmp_path / slots.TABLE).write_bytes(spoilt)
    assert queue.runs() == ["d", "c"], "oldest first"
    aside = damaged_queues(tmp_path)
    assert aside == ["queue.damaged-1.sqlite"]
    assert (tmp_path / aside[0]).read_bytes() == spoilt
    found = {name: queue.presence(name) for name in "abcdefg"}
    assert [name for name in found if found[name].paused] == ["e"]
    assert [name for name in found if found[name].starting] == ["c", "d"]
    run, claim = queue.claim_next()
    assert (run, queue.claim_next()) == ("d", None), "a has one of two slots; b pauses"
    claim.release()
    (tmp_path / slots.TABLE).write_bytes(b"once more")
    queue.join("f")
    assert (queue.runs(), len(damaged_queues(tmp_path))) == (["d", "c", "f"], 2)


def mended_until(root, step):
    """Open a damaged table until the process kills itself before a step of mending, the files' renaming among them."""
    left, rename = [step], Path.rename

    def kill(path, target):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(path, target)

    Path.rename = kill
    Queue(root).runs()


@pytest.mark.parametrize("step", range(3))
def test_a_process_killed_while_it_mends_the_table_loses_nothing(queue, tmp_path, step):
    noted(tmp_path, {"a": 1, "b": 2})
    queue.join("a")
    (tmp_path / slots.TABLE).write_bytes(b"no table at all")
    process = multiprocessing.get_context("fork").Process(target=mended_until, args=(tmp_path, step))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert queue.runs() == ["a", "b"]
    assert [(tmp_path / name).read_bytes() for name in damaged_queues(tmp_path)] == [b"no table at all"]


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
