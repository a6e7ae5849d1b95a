"""The shelf: runs are made, found, named, deleted and pruned; a run branches off from another's frame."""

import json
import os
import signal
import time
from dataclasses import replace

import pytest
import torch

from tests.core.runs_tools import SPEC, called, first_two, tiny_task, wait_for
from transformer_core.training.runs import removal
from transformer_core.training.runs import shelf as shelf_module
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.folder import KEPT, LAUNCHED, is_held
from transformer_core.training.runs.shelf import Shelf
from transformer_core.training.runs.sitting import Sitting
from transformer_core.training.spec import DataSpec, Origin

LONG = replace(SPEC, name="slow", training=replace(SPEC.training, epochs=100))


def age(store, seconds):
    about = json.loads((store.folder / "run.json").read_text())
    (store.folder / "run.json").write_text(json.dumps(about | {"created": time.time() - seconds}))


def ids(stores):
    return [store.id for store in stores]


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "runs")


def test_runs_are_listed_newest_first_and_found_by_their_id(shelf):
    assert shelf.all() == []
    old, new = shelf.create(SPEC), shelf.create(replace(SPEC, name="second"))
    age(old, 100)
    assert ids(shelf.all()) == [new.id, old.id]
    assert Shelf(shelf.root).open(new.id).spec == new.spec
    for name in ("", "zzzzzzzzzz", "../runs", "A2345678", old.id + "/", None):
        with pytest.raises(RunError, match="there is no run"):
            shelf.open(name)


def test_a_broken_folder_is_shown_with_its_reason_and_can_be_deleted(shelf):
    sound, broken = shelf.create(SPEC), shelf.create(SPEC)
    (broken.folder / "spec.json").write_text("{}")
    (shelf.root / "not a run").mkdir()
    assert ids(shelf.all()) == [sound.id]
    assert list(shelf.broken()) == [broken.id]
    assert "spec.json" in shelf.broken()[broken.id]
    shelf.delete(broken.id)
    assert shelf.broken() == {}


def test_a_run_gets_another_name_which_nothing_else_follows(shelf):
    store = shelf.create(SPEC)
    assert shelf.rename(store.id, "  my own  ").spec == replace(SPEC, name="my own")
    for name in ("", "   ", "x" * 81):
        with pytest.raises(RunError, match="name="):
            shelf.rename(store.id, name)
    with pytest.raises(RunError, match="there is no run"):
        shelf.delete("zzzzzzzzzz")


def test_data_lie_in_the_file_that_the_spec_names(shelf, tmp_path):
    spec = replace(SPEC, data=DataSpec(source="table", file="rows.csv"))
    assert (shelf.create(spec, data=b"a,b").folder / "rows.csv").read_bytes() == b"a,b"
    (tmp_path / "other.csv").write_bytes(b"c,d")
    assert (shelf.create(spec, data=tmp_path / "other.csv").folder / "rows.csv").read_bytes() == b"c,d"
    for refused, data in ((spec, None), (SPEC, b"a,b")):
        with pytest.raises(RunError, match="must be given together"):
            shelf.create(refused, data=data)
    for name in ("spec.json", "run.sqlite", "state", ".hidden"):
        with pytest.raises(RunError, match="a name that the run needs itself"):
            shelf.create(replace(SPEC, data=DataSpec(source="table", file=name)), data=b"")
    with pytest.raises(RunError, match=r"rows\.csv cannot be copied: No such file"):
        shelf.create(spec, data=tmp_path / "missing.csv")
    assert len(shelf.all()) == 2
    assert not list(shelf.root.glob(".new-*"))


def test_a_folder_that_cannot_be_made_is_told_with_words(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"the run cannot be made: (Not a directory|File exists)"):
        Shelf(tmp_path / "file").create(SPEC)


def test_a_run_with_a_worker_is_deleted_only_when_it_may_be_stopped(shelf):
    store = shelf.create(LONG)
    process = called(store)
    wait_for(lambda: store.status().step >= 2)
    with pytest.raises(RunError, match="has a worker; stop it"):
        shelf.delete(store.id)
    shelf.delete(store.id, stop=True)
    process.join(60)
    assert not store.folder.exists()
    assert shelf.all() == []


def test_a_worker_that_does_not_listen_is_killed_before_its_run_is_deleted(shelf, monkeypatch):
    store = shelf.create(LONG)
    process = called(store)
    wait_for(lambda: store.status().step >= 2)
    os.kill(process.pid, signal.SIGSTOP)
    monkeypatch.setattr(removal, "PATIENCE", 0.5)
    shelf.delete(store.id, stop=True)
    process.join(60)
    assert process.exitcode == -9
    assert not store.folder.exists()


def test_pruning_takes_the_oldest_that_have_ended_and_spares_named_and_live_ones(shelf, monkeypatch):
    monkeypatch.setattr(shelf_module, "MOST_RUNS", 3)
    stores = [shelf.create(SPEC) for _ in range(3)]
    for place, store in enumerate(stores):
        age(store, 100 - place)
    shelf.rename(stores[0].id, "wanted")
    (stores[1].folder / LAUNCHED).touch()
    fourth = shelf.create(SPEC)
    assert shelf.prune() == [stores[2].id]
    assert set(ids(shelf.all())) == {stores[0].id, stores[1].id, fourth.id}
    (stores[1].folder / LAUNCHED).unlink()
    assert shelf.prune() == []
    monkeypatch.setattr(shelf_module, "MOST_BYTES", 1)
    assert shelf.prune() == [stores[1].id, fourth.id]
    assert ids(shelf.all()) == [stores[0].id]
    assert (stores[0].folder / KEPT).exists()


def test_a_run_branches_off_from_a_frame_and_no_longer_needs_it(shelf):
    parent = shelf.create(SPEC)
    Sitting(parent, tiny_task, first_two).work()
    spec = replace(SPEC, origin=Origin(run=parent.id, frame=3), model=replace(SPEC.model, d_ff=24))
    child = shelf.create(spec)
    weights = dict(parent.model(3).model.named_parameters())
    shelf.delete(parent.id)
    Sitting(child, tiny_task, first_two).work()
    assert child.status().state == "finished", child.status().message
    first = dict(child.model(0).model.named_parameters())
    fresh = {name for name, weight in first.items() if weight.shape != weights[name].shape}
    assert fresh
    assert all(torch.equal(first[name], weights[name]) for name in first.keys() - fresh)
    assert child.facts()["notes"] == [
        f"{len(first) - len(fresh)} of {len(first)} tensors are those of the moment that it branches off from."
    ]
    with pytest.raises(RunError, match="there is no run"):
        shelf.create(spec)
    with pytest.raises(RunError, match=r"frame 9 of run .* has no weights to begin with"):
        shelf.create(replace(spec, origin=Origin(run=child.id, frame=9)))


def test_a_branch_with_other_data_is_refused(shelf):
    parent = shelf.create(SPEC)
    Sitting(parent, tiny_task, first_two).work()
    child = shelf.create(replace(SPEC, origin=Origin(run=parent.id, frame=0)))

    def of_other_words(*arguments):
        task = tiny_task(*arguments)
        return replace(task, tokenizer=type(task.tokenizer).train("word", ["other words"], min_frequency=1))

    Sitting(child, of_other_words, first_two).work()
    assert child.status().state == "failed"
    assert "belong to another vocabulary" in child.status().message
    assert not is_held(child.folder / "worker.lock")
