"""The list of runs: they are made, found, named, deleted and pruned; a run branches off from another's frame."""

import json
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import pytest
import torch

from tests.helpers.made_runs import made_run
from tests.helpers.tiny_runs import SPEC, first_two, tiny_task
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.run_list import Bounds, RunList
from transformer_core.training.runs.store.folder import DATABASE, KEPT, follow, is_held, making
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.spec import DataSpec, Origin


def age(store, seconds):
    about = json.loads((store.folder / "run.json").read_text())
    (store.folder / "run.json").write_text(json.dumps(about | {"created": time.time() - seconds}))


def ids(stores):
    return [store.id for store in stores]


@pytest.fixture
def runs(tmp_path):
    return RunList(tmp_path / "runs")


def test_runs_are_listed_newest_first_and_found_by_their_id(runs):
    assert runs.all() == []
    old, new = runs.create(SPEC), runs.create(replace(SPEC, name="second"))
    age(old, 100)
    assert ids(runs.all()) == [new.id, old.id]
    assert RunList(runs.root).open(new.id).spec == new.spec
    for name in ("", "zzzzzzzzzz", "../runs", "A2345678", old.id + "/", None):
        with pytest.raises(RunError, match="there is no run"):
            runs.open(name)


def test_a_broken_folder_is_shown_with_its_reason_and_can_be_deleted(runs):
    sound, broken = runs.create(SPEC), runs.create(SPEC)
    (broken.folder / "spec.json").write_text("{}")
    (runs.root / "not a run").mkdir()
    assert ids(runs.all()) == [sound.id]
    assert list(runs.broken()) == [broken.id]
    assert "spec.json" in runs.broken()[broken.id]
    runs.delete(broken.id)
    assert runs.broken() == {}


@pytest.mark.parametrize("noted", ["[" * 100_000, '{"created": 1' + "0" * 400 + ', "owner": [[]]}', '{"created": NaN}'])
def test_odd_notes_of_a_runs_making_keep_no_other_run_from_being_listed(runs, noted):
    sound, odd = runs.create(SPEC), runs.create(SPEC)
    (odd.folder / "run.json").write_text(noted)
    assert ids(runs.all()) == [sound.id, odd.id]
    assert odd.owner == ""


def test_no_other_user_of_the_machine_reads_a_run(runs):
    folder = runs.create(SPEC).folder
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "spec.json", folder / "run.json")] == [
        0o700,
        0o600,
        0o600,
    ]


def test_what_a_killed_maker_left_goes_with_the_next_one_and_a_living_ones_stays(runs):
    with making(runs.root) as draft:
        left = shutil.copytree(draft.parent, runs.root / ".new-left")  # the lock of its maker is free
        runs.create(SPEC)
        assert not left.exists()
        assert list(runs.root.glob(".new-*")) == [draft.parent]
    assert not list(runs.root.glob(".new-*"))


def test_a_run_gets_another_name_which_nothing_else_follows(runs):
    store = runs.create(SPEC)
    assert runs.rename(store.id, "  my own  ").spec == replace(SPEC, name="my own")
    for name in ("", "   ", "x" * 81):
        with pytest.raises(RunError, match="name="):
            runs.rename(store.id, name)
    with pytest.raises(RunError, match="there is no run"):
        runs.delete("zzzzzzzzzz")


def test_data_lie_in_the_file_that_the_spec_names(runs, tmp_path):
    spec = replace(SPEC, data=DataSpec(source="table", file="rows.csv"))
    assert (runs.create(spec, data=b"a,b").folder / "rows.csv").read_bytes() == b"a,b"
    (tmp_path / "other.csv").write_bytes(b"c,d")
    assert (runs.create(spec, data=tmp_path / "other.csv").folder / "rows.csv").read_bytes() == b"c,d"
    for refused, data in ((spec, None), (SPEC, b"a,b")):
        with pytest.raises(RunError, match="must be given together"):
            runs.create(refused, data=data)
    for name in ("spec.json", "run.sqlite", "records.jsonl", "state", ".hidden"):
        with pytest.raises(RunError, match="a name that the run needs itself"):
            runs.create(replace(SPEC, data=DataSpec(source="table", file=name)), data=b"")
    with pytest.raises(RunError, match=r"rows\.csv cannot be copied: No such file"):
        runs.create(spec, data=tmp_path / "missing.csv")
    assert len(runs.all()) == 2
    assert not list(runs.root.glob(".new-*"))


def test_a_folder_that_cannot_be_made_is_told_with_words(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"the run cannot be made: (Not a directory|File exists)"):
        RunList(tmp_path / "file").create(SPEC)


def test_pruning_takes_the_oldest_that_have_ended_and_spares_named_and_live_ones(tmp_path):
    runs = RunList(tmp_path, bounds=Bounds(runs=4))
    stores = [runs.create(SPEC) for _ in range(3)]
    for place, store in enumerate(stores):
        age(store, 100 - place)
    runs.rename(stores[0].id, "wanted")
    Queue(runs.root).join(stores[1].id)
    fourth = runs.create(SPEC)
    assert runs.prune() == [stores[2].id]
    assert set(ids(runs.all())) == {stores[0].id, stores[1].id, fourth.id}
    Queue(runs.root).leave(stores[1].id)
    assert runs.prune() == []
    small = RunList(tmp_path, bounds=Bounds(size=sum(file.stat().st_size for file in stores[0].folder.rglob("*"))))
    assert small.prune() == [stores[1].id, fourth.id]
    assert ids(runs.all()) == [stores[0].id]
    assert (stores[0].folder / KEPT).exists()


def test_where_only_wanted_runs_are_left_a_new_one_is_refused_and_none_goes(tmp_path):
    runs = RunList(tmp_path, bounds=Bounds(runs=3))
    for _ in range(3):
        runs.rename(runs.create(SPEC).id, "wanted")
    with pytest.raises(RunError, match="you keep 3 runs, and at most 3 are kept; delete one"):
        runs.create(SPEC)
    assert len(runs.all()) == 3


def test_many_starts_of_one_person_take_nothing_from_another(tmp_path):
    bounds = Bounds(runs=3, live=2)
    ann, bob = (RunList(tmp_path, owner=name, bounds=bounds) for name in ("ann", "bob"))
    hers = ann.create(SPEC)
    age(hers, 10 * 24 * 3_600)
    his = [bob.create(SPEC) for _ in range(40)]
    assert {store.owner for store in ann.all()} == {"ann", "bob"}
    assert set(ids(ann.all())) == {hers.id, *ids(his[-3:])}
    for store in his[-2:]:
        Queue(tmp_path).join(store.id)
    with pytest.raises(RunError, match="2 of your runs compute or wait"):
        bob.create(SPEC)
    assert ann.create(SPEC).owner == "ann"


def test_a_full_server_takes_old_runs_that_nobody_follows_and_else_refuses(tmp_path):
    bounds = Bounds(all_runs=2)
    ann, bob = (RunList(tmp_path, owner=name, bounds=bounds) for name in ("ann", "bob"))
    first, second = ann.create(SPEC), ann.create(SPEC)
    with pytest.raises(RunError, match="the server keeps 2 runs and has no room"):
        bob.create(SPEC)
    for store in (first, second):
        age(store, 2 * 24 * 3_600)
    follow(first.folder)
    his = bob.create(SPEC)
    assert set(ids(bob.all())) == {first.id, his.id}


def test_a_run_branches_off_from_a_frame_and_no_longer_needs_it(runs):
    parent = runs.create(SPEC)
    Session(parent, tiny_task, first_two).work()
    spec = replace(SPEC, origin=Origin(run=parent.id, frame=3), model=replace(SPEC.model, d_ff=24))
    child = runs.create(spec)
    weights = dict(parent.model(3).model.named_parameters())
    runs.delete(parent.id)
    Session(child, tiny_task, first_two).work()
    assert child.status().state == "finished", child.status().message
    first = dict(child.model(0).model.named_parameters())
    fresh = {name for name, weight in first.items() if weight.shape != weights[name].shape}
    assert fresh
    assert all(torch.equal(first[name], weights[name]) for name in first.keys() - fresh)
    assert child.facts()["notes"] == [
        f"{len(first) - len(fresh)} of {len(first)} tensors are those of the moment that it branches off from."
    ]
    with pytest.raises(RunError, match="there is no run"):
        runs.create(spec)
    with pytest.raises(RunError, match=r"frame 9 of run .* has no weights to begin with"):
        runs.create(replace(spec, origin=Origin(run=child.id, frame=9)))


def test_a_branch_with_other_data_is_refused(runs):
    parent = runs.create(SPEC)
    Session(parent, tiny_task, first_two).work()
    child = runs.create(replace(SPEC, origin=Origin(run=parent.id, frame=0)))

    def of_other_words(*arguments):
        task = tiny_task(*arguments)
        return replace(task, tokenizer=type(task.tokenizer).train("word", ["other words"], min_frequency=1))

    Session(child, of_other_words, first_two).work()
    assert child.status().state == "failed"
    assert "belong to another vocabulary" in child.status().message
    assert not is_held(child.folder / "worker.lock")


@pytest.mark.parametrize(
    ("table", "spoilt"),
    [
        ("frames", '{"held_out_accuracy" 0.5}'),
        ("frames", '{"held_out_accuracy": "high"}'),
        ("frames", "7"),
        ("layouts", '{"trustworthiness": 1.0'),
        ("facts", '"classifier'),
    ],
)
def test_a_run_with_a_character_changed_in_its_database_is_broken_and_the_rest_as_ever(runs, table, spoilt):
    stores = [made_run(runs.root) for _ in range(3)]
    with closing(sqlite3.connect(stores[1].folder / DATABASE)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {'value' if table == 'facts' else 'measures'} = ?", (spoilt,))
    assert set(ids(runs.all())) == {stores[0].id, stores[2].id}
    assert list(runs.broken()) == [stores[1].id]
    assert "is not JSON" in runs.broken()[stores[1].id] or "must be measures" in runs.broken()[stores[1].id]
    read = {"frames": stores[1].frames, "layouts": stores[1].layouts, "facts": stores[1].facts}[table]
    with pytest.raises(RunError, match="cannot be read"):
        read()
    assert stores[0].frames()[-1].measures["held_out_accuracy"] >= 0
    runs.delete(stores[1].id)
    assert runs.broken() == {}
