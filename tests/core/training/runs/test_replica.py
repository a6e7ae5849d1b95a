"""A replica without a cluster: one folder takes over what is new in another, in answers of any size."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.helpers.tiny_runs import SPEC, first_two, own_curve, stored_curve, tiny_task
from transformer_core.training.runs.cluster import replica
from transformer_core.training.runs.cluster.remote_run import RemoteRun, require_versions, versions
from transformer_core.training.runs.cluster.replica import Seen, news_of, pack, seen_of, take_news, unpack
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.database import TABLES
from transformer_core.training.runs.store.folder import BUNDLE, DATABASE, LOG, SCRIPT, STATE
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker import session as session_module
from transformer_core.training.runs.worker.session import Session

NODE = {"node": '"far"'}


def rows_of(folder: Path) -> dict[str, list[tuple]]:
    """Return all rows of a run's database but the process that wrote it."""
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        database.execute("UPDATE status SET pid = 0")
        rows = {
            name: database.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in (*TABLES, "histograms")
        }
    rows["facts"] = [row for row in rows["facts"] if row[0] != "node"]
    return rows


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files that a run leaves."""
    kept = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".lock", ".sqlite"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in kept if "sqlite" not in path.name}


@contextmanager
def stopped_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let sessions stop after so many steps."""
    count = session_module.Progress.count

    def counted(self, step):  # type: ignore[no-untyped-def]
        count(self, step)
        if step.step == steps:
            raise session_module._Stopped

    with monkeypatch.context() as patch:
        patch.setattr(session_module.Progress, "count", counted)
        yield


@pytest.fixture
def sent(tmp_path: Path) -> tuple[RunStore, Path]:
    """A run, and the folder of a node to which it was sent."""
    store, there = RunList(tmp_path / "server").create(SPEC), tmp_path / "node" / "run"
    replica.rewind(store.folder)
    unpack(pack(store.folder), there)
    return store, there


def take_all(there: Path, here: Path, *, is_over: bool) -> int:
    """Take over all that is new; return how many answers that took."""
    for answers in range(1, 100):
        news = news_of(there, seen_of(here), is_over=is_over)
        assert news is not None
        take_news(here, news, NODE)
        if news.is_whole:
            return answers
    raise AssertionError("it never ends")


@pytest.mark.parametrize("small", [False, True])
def test_the_server_has_every_row_and_every_file_of_the_node(sent, small: bool, monkeypatch) -> None:
    store, there = sent
    if small:
        monkeypatch.setattr(replica, "MOST_BYTES", 1)
        monkeypatch.setattr(replica, "MOST_STEPS", 4)
    Session(RunStore(there), tiny_task, first_two).work()
    assert take_all(there, store.folder, is_over=True) == (5 if small else 1)
    assert rows_of(store.folder) == rows_of(there)
    assert set(store.histograms()) == {0, 1, 2, 3, 4}
    left, right = files_of(store.folder), files_of(there)
    assert {name: left[name] for name in right} == right
    assert store.status().state == "finished"
    assert store.facts()["node"] == "far"
    assert stored_curve(store) == own_curve(SPEC)
    assert store.model().name == f"{store.id}-004"
    seen = seen_of(store.folder)
    assert (seen.step, seen.frame, seen.published, seen.points) == (15, 4, 4, True)


def test_readers_see_the_end_last_and_a_run_goes_on_elsewhere_from_the_state_that_was_taken(
    sent, tmp_path: Path, monkeypatch
) -> None:
    store, there = sent
    with stopped_after(11, monkeypatch):
        Session(RunStore(there), tiny_task, first_two).work()
    take_all(there, store.folder, is_over=False)
    assert not (store.folder / SCRIPT).exists(), "what is written at the end is taken at the end"
    assert list((store.folder / STATE).glob("*.safetensors"))
    shutil.rmtree(there)  # the node is gone
    elsewhere = tmp_path / "other" / "run"
    replica.rewind(store.folder)
    unpack(pack(store.folder), elsewhere)
    assert store.status().step == 9, "the last saved state, which is that of a frame"
    assert stored_curve(store) == own_curve(SPEC)[:9]
    Session(RunStore(elsewhere), tiny_task, first_two).work()
    news = news_of(elsewhere, seen_of(store.folder), is_over=False)
    assert news is not None
    take_news(store.folder, news, NODE)
    assert store.status().state == "interrupted", "it is not finished before all of it is there"
    take_all(elsewhere, store.folder, is_over=True)
    assert store.status().state == "finished"
    assert rows_of(store.folder) == rows_of(elsewhere)
    assert stored_curve(store) == own_curve(SPEC)
    assert (store.folder / BUNDLE).is_dir()
    assert not list((store.folder / STATE).glob("*")), "what a finished run needs no more goes here as well"


def test_what_a_node_needs_is_sent_and_nothing_else(sent) -> None:
    store, _ = sent
    (store.folder / LOG).write_text("said here")
    Session(store, tiny_task, first_two).work()
    assert set(pack(store.folder)) == {"run.json", "spec.json", "tokenizer.json", DATABASE}


def test_a_node_of_other_versions_is_refused_and_one_that_has_begun_nothing_has_no_news() -> None:
    require_versions(versions())
    with pytest.raises(RunError, match=r"^the node \S+ has torch \S+, the server 1\.0; install the same on both$"):
        require_versions({**versions(), "torch": "1.0"})
    assert RemoteRun(tiny_task, first_two).news(Seen()) is None
