"""Failures of a session: reported in words, what was written is kept, and the run can be continued."""

import errno
import io
import sqlite3
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors import SafetensorError

from tests.helpers.tiny_runs import SPEC, first_two, own_curve, stored_curve, tiny_task
from transformer_core.training.loop import DivergedError
from transformer_core.training.runs.errors import FULL, RunError
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store import database
from transformer_core.training.runs.store.folder import DATABASE, LOCK, RESERVE, hold
from transformer_core.training.runs.worker import process, session
from transformer_core.training.runs.worker.session import Session


@contextmanager
def store_held(store):
    """Hold a run as its worker does."""
    lock = hold(store.folder / LOCK)
    yield
    lock.release()


def test_layouts_that_fail_are_told_and_cost_no_frame(tmp_path):
    def failing(_store):
        raise ZeroDivisionError("no plane")

    store = RunList(tmp_path).create(SPEC)
    Session(store, tiny_task, failing).work()
    assert store.status().state == "finished"
    assert "could not be computed: ZeroDivisionError: no plane" in store.status().message
    assert len(store.frames()) == 5
    assert store.layouts() == []


def test_training_that_diverges_says_so_and_keeps_what_was(tmp_path):
    def diverging(*arguments):
        task, calls = tiny_task(*arguments), []

        def objective(model, batch):
            calls.append(1)
            return task.objective(model, batch) * (1.0 if len(calls) < 9 else float("nan"))

        return replace(task, objective=objective)

    store = RunList(tmp_path).create(SPEC)
    Session(store, diverging, first_two).work()
    status = store.status()
    assert (status.state, status.step) == ("failed", 7)
    assert "step 8: the loss is nan" in status.message
    assert "learning_rate" in status.message
    assert stored_curve(store) == own_curve(SPEC)[:7]
    assert len(store.frames()) == len(store.layouts()) / 2 == 3
    assert issubclass(DivergedError, ValueError)


def test_a_full_database_fails_with_words_and_the_run_goes_on_once_there_is_room(tmp_path, monkeypatch):
    def cramped(path):
        connection = open_writer(path)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 6}")
        return connection

    open_writer = database.open_writer
    spec = replace(SPEC, training=replace(SPEC.training, epochs=40))
    store = RunList(tmp_path).create(spec)
    monkeypatch.setattr(database, "open_writer", cramped)
    Session(store, tiny_task, first_two).work()
    assert store.status().state == "failed"
    assert FULL in store.status().message
    monkeypatch.undo()
    Session(store, tiny_task, first_two).work()
    assert store.status().state == "finished"
    assert stored_curve(store) == own_curve(spec)


def test_a_full_disk_while_saving_fails_with_words(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    store = RunList(tmp_path).create(SPEC)
    monkeypatch.setattr(session, "save_run", full)
    Session(store, tiny_task, first_two).work()
    assert (store.status().state, store.status().message) == ("failed", FULL)


@pytest.mark.parametrize("raised", [OSError(errno.ENOSPC, "full"), SafetensorError("I/O error (os error 28)")])
def test_a_disk_that_others_keep_full_is_told_by_the_room_that_was_reserved(tmp_path, monkeypatch, raised):
    def full(*_, **__):
        raise RunError(FULL)

    def save(*_):
        for name in ("set_state", "add_steps", "publish"):
            monkeypatch.setattr(database.RunWriter, name, full)
        monkeypatch.setattr(session.traceback, "print_exception", no_log)
        raise raised

    def no_log(*_):
        raise OSError(errno.ENOSPC, "the log has no room either")

    store = RunList(tmp_path).create(SPEC)
    monkeypatch.setattr(session, "save_run", save)
    Session(store, tiny_task, first_two).work()
    status = store.status()
    assert (status.state, status.message, status.alive) == ("failed", FULL, False)
    assert (store.folder / RESERVE).stat().st_size < 4_096, "the rest of the room is free"
    monkeypatch.undo()
    Session(store, tiny_task, first_two).work()
    assert (store.status().state, store.status().message) == ("finished", "")
    assert stored_curve(store) == own_curve(SPEC)
    assert not (store.folder / RESERVE).exists()


def test_a_run_that_finds_no_room_at_its_start_leaves_none_taken(tmp_path, monkeypatch):
    store = RunList(tmp_path).create(SPEC)
    monkeypatch.setattr(Path, "write_bytes", lambda path, _: path.touch() or fail(errno.ENOSPC))
    with pytest.raises(RunError, match="the run's folder cannot be written: the disk is full"):
        Session(store, tiny_task, first_two)
    assert not (store.folder / RESERVE).exists()


def fail(number):
    raise OSError(number, "")


def test_a_database_is_readable_where_a_reader_finds_no_room_for_its_own_file(tmp_path, monkeypatch):
    store = RunList(tmp_path).create(SPEC)
    Session(store, tiny_task, first_two).work()
    real = database._format_of

    def cramped(connection):
        if "immutable" not in opened[-1]:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return real(connection)

    opened, connected = [], database._connected
    monkeypatch.setattr(database, "_connected", lambda path, how: opened.append(how) or connected(path, how))
    monkeypatch.setattr(database, "_format_of", cramped)
    assert store.status().state == "finished"
    assert len(store.frames()) == 5
    with store_held(store), pytest.raises(RunError, match="the disk is full or damaged"):
        store.status()


def test_a_folder_that_may_not_be_written_is_told_with_words(tmp_path, monkeypatch):
    def closed(*_):
        raise sqlite3.OperationalError("attempt to write a readonly database")

    store = RunList(tmp_path).create(SPEC)
    monkeypatch.setattr(database, "open_writer", closed)
    with pytest.raises(RunError, match="the run's database"):
        Session(store, tiny_task, first_two)
    monkeypatch.undo()
    Session(store, tiny_task, first_two).work()
    assert store.status().state == "finished", "the lock was free again"


def test_an_unforeseen_error_is_told_without_a_folder_of_the_machine(tmp_path, capfd):
    def broken(*_):
        raise KeyError("/home/somebody/secret/file.txt")

    store = RunList(tmp_path).create(SPEC)
    Session(store, broken, first_two).work()
    assert store.status().message == "KeyError: 'file.txt'"
    assert "Traceback" in capfd.readouterr().err


def test_a_model_too_large_for_two_frames_is_refused_before_it_is_made(tmp_path):
    def large(*arguments):
        task = tiny_task(*arguments)
        return replace(task, config=replace(task.config, vocab_size=600_000, d_model=512, max_len=8))

    store = RunList(tmp_path).create(SPEC)
    Session(store, large, first_two).work()
    assert store.status().state == "failed"
    assert "at most 67,108,864" in store.status().message


def test_a_worker_that_cannot_begin_leaves_its_reason_where_readers_look(tmp_path):
    store, answers = RunList(tmp_path).create(SPEC), io.BytesIO()
    Queue(tmp_path).join(store.id)
    (store.folder / DATABASE).mkdir()
    process._run(store.folder, process.LastTask(tiny_task), first_two, answers)
    assert b"may not be opened or written" in answers.getvalue()
    (store.folder / DATABASE).rmdir()
    assert Queue(tmp_path).runs() == []
    status = store.status()
    assert (status.state, status.alive) == ("interrupted", False)
    assert status.message.startswith("the run was never started. Its last lines: the run's database cannot be opened")
