"""A run as a zip: what comes back is what went; live, stopped or done."""

import io
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.bundles import zipped
from tests.helpers.tiny_runs import SPEC, first_two, own_curve, stored_curve, tiny_task
from transformer_core.checkpoints import load
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.worker.session import Session


def test_a_run_comes_back_as_it_went(exported, tmp_path):
    store, files = exported
    runs = RunList(tmp_path / "elsewhere")
    back = runs.import_zip(zipped(files))
    assert back.id == store.id
    assert (back.spec, back.facts(), back.points().texts) == (store.spec, store.facts(), store.points().texts)
    assert stored_curve(back) == stored_curve(store) == own_curve(SPEC)
    assert back.status() == store.status()
    assert [vars(frame) for frame in back.frames()] == [vars(frame) for frame in store.frames()]
    for ours, theirs in zip(back.layouts(), store.layouts(), strict=True):
        np.testing.assert_array_equal(ours.xy, theirs.xy)
    for ours, theirs in zip(vars(back.curves()).values(), vars(store.curves()).values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for frame in range(5):
        np.testing.assert_array_equal(back.embeddings(frame), store.embeddings(frame))
        np.testing.assert_array_equal(back.predictions(frame), store.predictions(frame))
    assert [vars(layout).keys() for layout in back.layouts()] == [vars(layout).keys() for layout in store.layouts()]
    assert [layout.measures for layout in back.layouts()] == [layout.measures for layout in store.layouts()]
    ours, theirs = back.histograms(), store.histograms()
    assert list(ours) == list(theirs) == [0, 1, 2, 3, 4]
    for frame, found in ours.items():
        assert found.groups == theirs[frame].groups == ("embeddings", "encoder.0", "output")
        np.testing.assert_array_equal(found.counts, theirs[frame].counts)
        np.testing.assert_array_equal(found.rms, theirs[frame].rms)
    assert (back.folder / "rows.csv").read_bytes() == (store.folder / "rows.csv").read_bytes()
    assert load(back.folder / "bundle", device="cpu").card == load(store.folder / "bundle", device="cpu").card
    assert back.model(2).n_parameters == store.model(2).n_parameters
    again = runs.import_zip(zipped(files))
    assert again.id != store.id, "its own id is taken"
    assert len(runs.all()) == 2


def test_a_zip_holds_what_a_run_is_and_nothing_of_the_machine(exported):
    store, files = exported
    frames = {f"frames/{number:03d}.safetensors" for number in range(5)}
    bundle = {f"bundle/{name}" for name in ("card.md", "config.json", "model.safetensors", "tokenizer.json")}
    plain = {"run.json", "spec.json", "records.jsonl", "arrays.npz", "tokenizer.json", "repeat.py", "rows.csv"}
    assert set(files) == frames | bundle | plain
    home = str(store.folder.parent).encode()
    assert not [name for name, content in files.items() if home in content]


def test_a_stopped_run_goes_on_elsewhere_to_the_same_curve(tmp_path):
    here, there = RunList(tmp_path / "here"), RunList(tmp_path / "there")
    store, live, stopped = here.create(SPEC), io.BytesIO(), io.BytesIO()

    def stopping(*arguments):
        task, taken = tiny_task(*arguments), []

        def objective(model, batch):
            taken.append(batch)
            if len(taken) == 7:
                here.export_zip(store.id, live)
                session.control.stop()
            return task.objective(model, batch)

        return replace(task, objective=objective)

    session = Session(store, stopping, first_two)
    session.work()
    assert store.status().state == "stopped"
    assert 0 < store.status().step < 15
    here.export_zip(store.id, stopped)
    snapshot = there.import_zip(live)
    assert snapshot.status().state == "stopped"
    assert stored_curve(snapshot) == own_curve(SPEC)[: snapshot.status().step]
    back = there.import_zip(stopped)
    Session(back, tiny_task, first_two).work()
    assert stored_curve(back) == own_curve(SPEC)


def test_a_run_that_has_not_begun_has_nothing_to_export(tmp_path):
    runs = RunList(tmp_path)
    with pytest.raises(RunError, match="nothing to export"):
        runs.export_zip(runs.create(SPEC).id, io.BytesIO())
