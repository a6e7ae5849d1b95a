"""The store: what readers get from a run that is half made, of another version, or damaged; failures in words."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from tests.helpers.tiny_runs import SPEC
from transformer_core.training.histograms import BINS, Histograms
from transformer_core.training.runs.errors import FULL, RunError, in_words, without_paths, words_of
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.store.database import RunWriter, from_blob, to_blob
from transformer_core.training.runs.store.records import Frame, Layout, Presence
from transformer_core.training.runs.store.run_store import RunStore


@pytest.fixture
def store(tmp_path):
    return RunList(tmp_path).create(SPEC)


@pytest.fixture
def writer(store):
    """Write the run's database."""
    with closing(RunWriter(store.folder)) as one:
        yield one


def test_a_run_that_has_not_begun_is_empty_and_says_so(store):
    assert (store.status().state, store.status().message) == ("interrupted", "the run was never started")
    assert store.frames() == store.layouts() == []
    assert store.points() is None
    assert store.facts() == {}
    assert store.curves().step.size == 0
    assert store.weights_path(0) is None
    for ask, words in (
        (store.model, "has no frame yet"),
        (store.tokenizer, "the tokenizer of run .* cannot be read"),
        (lambda: runner().ask(store, "stop"), "has no worker that could stop"),
        (lambda: store.model(3), "the weights of frame 3 of run .* were not kept"),
    ):
        with pytest.raises(RunError, match=words):
            ask()


@pytest.mark.parametrize(
    ("written", "presence", "seen"),
    [
        ("running", Presence(alive=True), "running"),
        ("running", Presence(), "interrupted"),
        ("running", Presence(starting=True, queue_place=3), "queued"),
        ("stopped", Presence(starting=True), "starting"),
        ("stopped", Presence(alive=True), "stopped"),
        ("paused", Presence(alive=True), "paused"),
        ("paused", Presence(paused=True), "paused"),
        ("paused", Presence(), "interrupted"),
    ],
)
def test_whether_a_run_is_alive_is_told_by_what_computes_it(store, writer, written, presence, seen):
    writer.set_state(written)
    status = RunStore(store.folder, lambda _: presence).status()
    assert (status.state, status.alive, status.queue_place) == (seen, presence.alive, presence.queue_place)


def test_a_folder_without_a_sound_spec_is_told_with_words(tmp_path):
    (tmp_path / "a2345678").mkdir()
    with pytest.raises(RunError, match=r"run a2345678 cannot be read: No such file"):
        RunStore(tmp_path / "a2345678")
    (tmp_path / "a2345678" / "spec.json").write_text('{"data": 3}')
    with pytest.raises(RunError, match=r"spec\.json: the run's settings cannot be read"):
        RunStore(tmp_path / "a2345678")


def test_a_damaged_database_and_one_of_another_version_are_told_apart(store):
    file = store.folder / "run.sqlite"
    file.write_bytes(b"this is no database" * 100)
    with pytest.raises(RunError, match=f"run {store.id} cannot be read: the run's database is damaged"):
        store.status()
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 7")
    for read in (store.status, store.frames, lambda: RunWriter(store.folder)):
        with pytest.raises(RunError, match="format=7; this version of Vitrine reads format=1"):
            read()


def test_a_database_that_is_being_made_is_empty_to_readers(store):
    with closing(sqlite3.connect(store.folder / "run.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE status (id)")
        assert store.frames() == []
        assert store.status().message == "the run was never started"


def test_a_reader_in_the_middle_of_reading_does_not_hold_the_writer_up(store, writer):
    writer.add_steps([(1, 0.5, 0.1, 1.0, 0.01)], 0.5, None)
    with closing(sqlite3.connect(store.folder / "run.sqlite")) as reader:
        rows = reader.execute("SELECT step FROM steps")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM steps").fetchall()
        writer.add_steps([(2, 0.25, 0.1, 1.0, 0.02)], 1.0, 3.0)
        assert reader.execute("SELECT COUNT(*) FROM steps").fetchone() == (1,), "it sees the moment it began"
        rows.close()
    assert store.curves(after=1).loss.tolist() == [0.25]
    assert (store.status().step, store.status().epoch) == (2, 1.0)


def test_a_frame_is_seen_once_its_layouts_are_there(store, writer):
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    writer.set_points(["a", "b", "c"], [0, 1, 0], [False, True, True])
    frame = Frame(0, 0, 0.0, 0.0, {"train_loss": 0.7, "held_out_loss": float("inf")})
    writer.add_frame(frame, vectors, vectors, published=False)
    assert store.frames() == []
    assert store.status().n_frames == 0
    writer.publish(0, [Layout(0, "tsne", np.array([[0, 1], [2, np.nan], [4, 5]]), {})])
    assert store.frames()[0].measures == {"train_loss": 0.7}
    assert store.layouts()[0].xy.tolist() == [[0, 1], [2, 0], [4, 5]]
    np.testing.assert_array_equal(store.embeddings(0), vectors)


def test_a_failed_write_leaves_nothing_half_written(store, writer):
    with pytest.raises(RunError, match="the run cannot be written: the run's database fails"):
        writer.add_steps([(1, 0.5, 0.1, 1.0, 0.01), (2, None, 0.1, 1.0, 0.02)], 0.5, None)  # type: ignore[list-item]
    assert store.curves().step.size == 0
    writer.add_steps([(1, 0.5, 0.1, 1.0, 0.01)], 0.5, None)


def test_numbers_lie_in_a_blob_row_after_row():
    numbers = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_array_equal(from_blob(to_blob(numbers), 5), numbers)
    with pytest.raises(RunError, match="60 bytes are not 7 rows"):
        from_blob(to_blob(numbers), 7)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "/home/me/x"), FULL),
        (PermissionError(13, "Permission denied", "/home/me/x"), "may not be written to; set VITRINE_RUNS"),
        (OSError(30, "Read-only file system"), "may not be written to"),
        (MemoryError(), "the memory does not suffice"),
        (ValueError("d_model=3 must be even"), "d_model=3 must be even"),
        (RuntimeError("cannot open /home/me/lib/x.so"), "RuntimeError: cannot open x.so"),
        (OSError(5, "Input/output error"), "Input/output error"),
    ],
)
def test_failures_are_told_in_words(error, words):
    assert words in words_of(error)
    assert "/home" not in words_of(error)


def test_paths_lose_their_folders():
    text = 'File "/usr/lib/python3/site.py", line 3; C:\\Users\\me\\run.py and a/b 3/4 of it'
    assert without_paths(text) == 'File "site.py", line 3; run.py and a/b 3/4 of it'
    with pytest.raises(RunError, match=r"^copying: the disk is full"), in_words("copying"):
        raise OSError(28, "No space left on device")


def test_a_run_of_an_earlier_version_has_no_histograms_until_it_goes_on(store, writer):
    writer.close()
    with closing(sqlite3.connect(store.folder / "run.sqlite")) as connection:
        connection.execute("DROP TABLE histograms")
    assert store.histograms() == {}
    found = Histograms(("output",), np.ones((3, 1, BINS), np.uint32), np.ones((3, 1), np.float32))
    with closing(RunWriter(store.folder)) as again:
        again.add_frame(Frame(0, 0, 0.0, 0.0, {}), None, None, published=True, histograms=found)
        again.add_frame(Frame(1, 3, 0.0, 0.0, {}), None, None, published=False, histograms=found)
    assert list(store.histograms()) == [0]
    np.testing.assert_array_equal(store.histograms()[0].counts, found.counts)
    with closing(sqlite3.connect(store.folder / "run.sqlite")) as connection:
        connection.execute("UPDATE histograms SET counts = X'00'")
        connection.commit()
    with pytest.raises(RunError, match="are no groups of histograms"):
        store.histograms()
