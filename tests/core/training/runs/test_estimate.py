"""The estimate: measured on the run itself, which it leaves as it was; and the data are made once for both."""

import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from tests.helpers.tiny_runs import SPEC, WITH_DATA, own_curve, tiny_task
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.records import Estimate
from transformer_core.training.runs.worker import estimate as module
from transformer_core.training.runs.worker.build_run import build_run
from transformer_core.training.runs.worker.estimate import MOST_STEPS, estimate
from transformer_core.training.runs.worker.process import LastTask
from transformer_core.training.spec import Origin

CPU = torch.device("cpu")


def test_an_estimate_counts_all_steps_and_frames():
    found = estimate(SPEC, None, tiny_task)
    assert (found.steps, found.frames) == (15, 5)
    assert found.seconds == pytest.approx(15 * found.seconds_a_step + 5 * found.seconds_a_frame)
    assert found.seconds_a_step > 0
    model = build_run(SPEC, tiny_task(SPEC, None, CPU), CPU).model
    assert found.n_parameters == sum(weight.numel() for weight in model.parameters())
    assert Estimate(**asdict(found)) == found


@pytest.mark.parametrize(("seconds", "steps"), [(0.0, 1), (math.inf, MOST_STEPS)])
def test_steps_are_measured_while_there_is_time_one_at_least_and_not_many(monkeypatch, seconds, steps):
    taken = []

    def counting(*arguments):
        run = build_run(*arguments)
        steps = run.steps
        monkeypatch.setattr(run, "steps", lambda: (taken.append(step) or step for step in steps()))
        return run

    monkeypatch.setattr(module, "build_run", counting)
    monkeypatch.setattr(module, "SECONDS_OF_STEPS", seconds)
    estimate(replace(SPEC, training=replace(SPEC.training, epochs=50)), None, tiny_task)
    assert len(taken) == steps


def test_what_cannot_be_run_cannot_be_estimated():
    def large(*arguments):
        task = tiny_task(*arguments)
        return replace(task, config=replace(task.config, vocab_size=600_000, d_model=512))

    with pytest.raises(RunError, match="at most 67,108,864"):
        estimate(SPEC, None, large)


def test_the_task_of_an_estimate_serves_the_run_of_the_same_spec(tmp_path):
    made = []

    def counting(spec, folder, device):
        made.append(spec)
        return tiny_task(spec, folder, device)

    tasks = LastTask(counting)
    estimate(SPEC, None, tasks)
    same = replace(SPEC, name="other", frames=9, threads=2, origin=Origin(run="ab12cd34"))
    task = tasks(same, Path("anywhere"), CPU)
    assert len(made) == 1
    assert [step.loss for step in build_run(SPEC, task, CPU).steps()] == [loss for _, loss, *_ in own_curve(SPEC)]
    for number, other in enumerate((replace(SPEC, points=50), SPEC, replace(SPEC, softmax_before_loss=True))):
        assert tasks(other, None, CPU) is not task
        assert len(made) == 2 + number
    for folder, content in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rows.csv").write_bytes(content)
    tasks(WITH_DATA, tmp_path / "a", CPU)
    tasks(WITH_DATA, tmp_path / "b", CPU)
    assert len(made) == 5, "the same data in another folder"
    tasks(WITH_DATA, tmp_path / "c", CPU)
    assert len(made) == 6, "other data under the same name"
