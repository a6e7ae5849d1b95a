"""A session, in this process: what a run leaves on disk; recording changes nothing; layouts follow."""

import copy
import json
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.engine import shipped
from tests.helpers.tiny_runs import (
    LABELS,
    SPEC,
    TEXTS,
    first_two,
    own_curve,
    stored_curve,
    tiny_task,
    wait_for,
)
from transformer_core.analysis.lab.changes import code_of
from transformer_core.analysis.lab.healing import beginning_of, heal_spec
from transformer_core.analysis.lab.weights import WeightEdit
from transformer_core.checkpoints import load
from transformer_core.training.loop import Run
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.worker import recorder
from transformer_core.training.runs.worker import session as session_module
from transformer_core.training.runs.worker.build_run import build_run
from transformer_core.training.runs.worker.layout_thread import LayoutThread, continued_layouts
from transformer_core.training.runs.worker.recorder import embed
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.tasks.make import TRAINED_ON, held_out_of, make_task

OTHER_MATRIX = "encoder.stack.layers.0.self_attention.value_proj.weight"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    store = RunList(tmp_path_factory.mktemp("runs")).create(SPEC)
    Session(store, tiny_task, first_two).work()
    return store


def test_a_run_leaves_its_curve_to_the_last_digit_though_frames_were_recorded(done):
    assert stored_curve(done) == own_curve(SPEC)
    assert (np.diff(done.curves().seconds) > 0).all()
    status = done.status()
    assert (status.state, status.step, status.total_steps, status.epoch, status.n_frames) == ("finished", 15, 15, 5, 5)
    assert status.message == ""
    assert not status.alive


def test_frames_are_where_the_timetable_says_and_come_with_both_layouts(done):
    assert [frame.step for frame in done.frames()] == done.facts()["frames_planned"] == [0, 1, 4, 9, 15]
    assert [frame.number for frame in done.frames(after=2)] == [3, 4]
    assert [(layout.frame, layout.method) for layout in done.layouts(after=3)] == [(4, "tsne"), (4, "pca")]
    for layout in done.layouts():
        np.testing.assert_array_equal(layout.xy, done.embeddings(layout.frame)[:, :2])
        assert layout.measures == {"trustworthiness": 1.0}, "a measure that is no number is left out"
    assert done.frames()[-1].measures["held_out_accuracy"] > 0


def test_the_model_of_a_frame_gives_that_frames_vectors_and_predictions(done):
    points = tiny_task(SPEC, None, torch.device("cpu")).points
    for frame in (0, 4):
        bundle = done.model(frame)
        vectors, probabilities = embed(bundle.model, points, 0)
        np.testing.assert_array_equal(vectors, done.embeddings(frame))
        np.testing.assert_array_equal(probabilities, done.predictions(frame))
        assert bundle.labels == ("negative", "positive")
    assert not np.array_equal(done.embeddings(0), done.embeddings(4))
    assert done.model().name == f"{done.id}-004"


def test_the_histograms_of_a_frame_count_its_weights_and_what_its_step_changed(done):
    """An independent run of the same spec, in which every magnitude is counted by numpy."""
    run = build_run(SPEC, tiny_task(SPEC, None, torch.device("cpu")), torch.device("cpu"))
    found, edges = done.histograms(), 10 ** np.linspace(-10, 2, 49)
    before = {name: p.detach().clone() for name, p in run.model.named_parameters()}
    assert found[0].counts[1:].sum() == 0
    for step in run.steps():
        now = {name: p.detach().clone() for name, p in run.model.named_parameters()}
        if step.step == 9:
            numbers = [now, {n: p.grad for n, p in run.model.named_parameters()}, {n: now[n] - before[n] for n in now}]
            for quantity, tensors in enumerate(numbers):
                inner = torch.cat([t.flatten() for name, t in tensors.items() if "layers.0" in name]).abs().numpy()
                expected = np.histogram(inner, edges)[0]
                counts = found[3].counts[quantity, found[3].groups.index("encoder.0")]
                assert np.abs(counts[1:].astype(int) - expected).sum() <= 2  # at an edge, by the last digit
                assert counts.sum() == inner.size
                assert counts[0] == (inner < 1e-10).sum()
                assert found[3].rms[quantity, 1] == pytest.approx(np.sqrt((inner.astype(float) ** 2).mean()), rel=1e-5)
        before = now
    assert step.step == 15


def test_points_and_tokenizer_are_kept(done):
    points = done.points()
    assert points is not None
    assert (points.texts, points.labels.tolist()) == (TEXTS, LABELS)
    assert points.held_out.dtype == bool
    assert done.tokenizer().encode(TEXTS[0]).labels == done.model().tokenizer.encode(TEXTS[0]).labels


def test_a_finished_run_is_a_bundle_with_a_card_that_says_how_to_repeat_it(done):
    bundle, last = load(done.folder / "bundle", device="cpu"), done.model(4)
    for ours, theirs in zip(bundle.model.parameters(), last.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    for words in (done.spec.to_json(), "torch", "1 threads", "majority", "python repeat.py", "After step 15 of 15"):
        assert words in bundle.card
    assert not (done.folder / "state" / "run.json").exists(), "nothing is left to go on with"


def test_a_finished_run_is_not_begun_again(done):
    with pytest.raises(RunError, match="has finished"):
        Session(done, tiny_task, first_two)


def test_a_kind_without_points_publishes_frames_at_once(tmp_path):
    def without_points(*arguments):
        return replace(tiny_task(*arguments), points=None)

    store = RunList(tmp_path).create(SPEC)
    Session(store, without_points, lambda _: pytest.fail("nothing is to be laid out")).work()
    assert store.status().n_frames == 5
    assert store.points() is None
    with pytest.raises(RunError, match="has no embeddings of frame 0"):
        store.embeddings(0)


def with_held_out(*losses: float):
    """Return what makes the tiny task, measuring these losses one after the other."""
    coming = iter(losses)

    def make(*about):
        task = tiny_task(*about)
        return replace(task, measure=lambda *asked: task.measure(*asked) | {"held_out_loss": next(coming)})

    return make


def test_a_run_stops_early_where_it_would_have_though_it_was_interrupted_and_its_card_names_the_best_step(
    tmp_path, monkeypatch
):
    spec = change(SPEC, patience=1, warm_up=0.0)
    whole, resumed = (RunList(tmp_path / name).create(spec) for name in ("whole", "resumed"))
    Session(whole, with_held_out(3.0, 2.0, 1.0, 2.0), first_two).work()
    count = session_module.Progress.count

    def failing(progress, step):
        if step.step == 6:
            raise OSError("the disk is full")
        count(progress, step)

    with monkeypatch.context() as patched:
        patched.setattr(session_module.Progress, "count", failing)
        Session(resumed, with_held_out(3.0, 2.0, 1.0), first_two).work()
    assert resumed.status().state == "failed"
    Session(resumed, with_held_out(2.0), first_two).work()
    for store in (whole, resumed):
        status = store.status()
        assert (status.state, status.step, status.total_steps, status.n_frames) == ("finished", 9, 15, 4)
        assert stored_curve(store) == own_curve(spec)[:9]
        card = load(store.folder / "bundle").card
        assert "Early stopping (patience 1, improvements of more than 0 nats) stopped the run after step 9; " in card
        assert "the held-out loss was lowest, 1.0000 nats, after step 4 (frame 2)." in card


def test_a_run_interrupted_at_the_step_where_it_stops_takes_no_further_step(tmp_path, monkeypatch):
    store = RunList(tmp_path).create(change(SPEC, patience=1, warm_up=0.0))
    with monkeypatch.context() as patched:
        patched.setattr(session_module, "finish_run", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
        Session(store, with_held_out(3.0, 2.0, 2.0), first_two).work()
    assert store.status().state == "failed"
    Session(store, tiny_task, first_two).work()
    assert (store.status().state, store.status().step) == ("finished", 4)


def test_fewer_frames_are_kept_of_a_large_model_and_the_facts_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_BYTES_OF_WEIGHTS", 3 * 4 * 2_018)
    store = RunList(tmp_path).create(SPEC)
    Session(store, tiny_task, first_two).work()
    assert store.facts()["frames_planned"] == [0, 4, 15]
    assert store.facts()["notes"] == ["3 frames are kept instead of 5: more weights would exceed 512 MB."]


class LayoutsOfATest(LayoutThread):
    """Layouts that wait until a test lets them; those under way when the session gives up are made, and no others."""

    may_begin = threading.Semaphore(0)

    def __init__(self, store, writer, make_layouts):
        def make(store):
            lay_out = make_layouts(store)
            return lambda frame, vectors: self.may_begin.acquire() and lay_out(frame, vectors)

        super().__init__(store, writer, make)

    def give_up(self):
        super().give_up()
        self.may_begin.release(99)
        self._thread.join()


@pytest.fixture
def layouts_begin(monkeypatch):
    """Return the semaphore that each frame's layouts wait for; a session that stops gives them up at once."""
    monkeypatch.setattr(LayoutsOfATest, "may_begin", threading.Semaphore(0))
    monkeypatch.setattr(session_module, "LayoutThread", LayoutsOfATest)
    monkeypatch.setattr(session_module, "PATIENCE_WITH_LAYOUTS", 0.0)
    return LayoutsOfATest.may_begin


def at_work(session):
    """Let a session work in a thread."""
    worker = threading.Thread(target=session.work)
    worker.start()
    return worker


def test_training_does_not_wait_for_layouts_and_the_run_ends_with_all_of_them(tmp_path, layouts_begin):
    store = RunList(tmp_path).create(SPEC)
    worker = at_work(Session(store, tiny_task, first_two))
    wait_for(lambda: store.status().step == 15)
    assert (store.status().state, store.status().n_frames) == ("running", 0)
    layouts_begin.release(5)
    worker.join()
    assert (store.status().state, store.status().n_frames) == ("finished", 5)
    assert len(store.layouts()) == 10


def test_layouts_that_a_stop_leaves_out_come_when_the_run_goes_on(tmp_path, layouts_begin):
    store = RunList(tmp_path).create(SPEC)
    worker = at_work(Session(store, tiny_task, first_two))
    wait_for(lambda: store.status().step == 15)
    runner().ask(store, "stop")
    worker.join()
    assert (store.status().state, store.status().n_frames) == ("stopped", 1)
    Session(store, tiny_task, first_two).work()
    assert (store.status().state, store.status().n_frames) == ("finished", 5)
    assert [layout.frame for layout in store.layouts()] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_pictures_drawn_after_an_interruption_are_those_that_would_have_been(tmp_path, monkeypatch, layouts_begin):
    whole, broken = (RunList(tmp_path).create(SPEC) for _ in range(2))
    layouts_begin.release(5)
    Session(whole, tiny_task, continued_layouts).work()
    for drawn in (2, 4):
        monkeypatch.setattr(LayoutsOfATest, "may_begin", threading.Semaphore(1))
        session = Session(broken, tiny_task, continued_layouts)
        worker = at_work(session)
        wait_for(lambda drawn=drawn: (broken.status().step, broken.status().n_frames) == (15, drawn - 1))
        session.control.stop()
        worker.join()
        assert broken.status().n_frames == drawn
    LayoutsOfATest.may_begin.release(5)
    Session(broken, tiny_task, continued_layouts).work()
    assert (broken.status().state, broken.status().n_frames) == ("finished", 5)
    for ours, theirs in zip(broken.layouts(), whole.layouts(), strict=True):
        np.testing.assert_array_equal(ours.xy, theirs.xy)
        assert ours.measures == theirs.measures
    assert {"trustworthiness", "displacement", "neighbours_train", "neighbours_held_out"} == set(theirs.measures)


def test_what_a_run_held_out_is_read_as_long_as_its_data_lie_beside_it(tmp_path: Path) -> None:
    rows = [{"text": f"{word} {number}", "label": label} for number in range(60) for label, word in enumerate("ab")]
    data = replace(SPEC.data, source="table", file="data.jsonl", labels=("x", "y"), held_out=24)
    spec = replace(SPEC, data=data)
    store = RunList(tmp_path).create(spec, data="\n".join(map(json.dumps, rows)).encode())
    Session(store, tiny_task, first_two).work()
    assert store.status().state == "finished", store.status().message
    read = store.model().read_held_out
    assert read is not None
    assert list(read()) == list(held_out_of(spec, store.folder))
    assert len(read()) == 24
    (store.folder / "data.jsonl").unlink()
    assert store.model().read_held_out is None


@pytest.mark.nightly
def test_pruned_weights_stay_zero_while_they_heal_beside_the_undamaged_model_with_the_same_training(
    tmp_path: Path,
) -> None:
    bundle = shipped("sentiment")
    name = "encoder.stack.layers.1.feed_forward.inner_proj.weight"
    changes = (code_of(WeightEdit(name, "prune", 0.9)), code_of(WeightEdit(OTHER_MATRIX, "noise", 0.5)))
    spec = heal_spec(bundle, changes, steps=10)
    spec = replace(spec, data=replace(spec.data, held_out=60), points=40, frames=8)
    store = RunList(tmp_path).create(spec, beginning=beginning_of(bundle, changes))
    Session(store, make_task, first_two).work()
    assert store.status().state == "finished", store.status().message
    healed, begun = (dict(store.model(frame).model.named_parameters()) for frame in (None, 0))
    zeros = begun[name] == 0
    assert zeros.float().mean() == pytest.approx(0.9, abs=0.01)
    assert torch.equal(healed[name] == 0, zeros)
    assert not torch.equal(healed[name], begun[name])
    assert not (healed[OTHER_MATRIX] == 0).any()
    task = make_task(spec, store.folder)
    alone = Run(
        copy.deepcopy(bundle.model).requires_grad_(True),
        task.objective,
        task.batches,
        steps_per_epoch=task.steps_per_epoch,
        config=spec.training,
    )
    assert len(list(alone.steps())) == store.status().step == 10
    reached = task.measure(alone.model.eval(), True)["held_out_accuracy"]
    assert store.facts()["baselines"][TRAINED_ON] == pytest.approx(reached, abs=1 / 60)
