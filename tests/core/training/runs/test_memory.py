"""The memory of a run: counted before it is taken, refused in words, and bounded in the worker's process."""

import gc
import os
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.tiny_runs import SPEC, first_two, tiny_task
from transformer_core.training.runs.errors import NO_MEMORY, RunError, words_of
from transformer_core.training.runs.presets import CHARACTERS, QUICK, REVERSE
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.worker import memory
from transformer_core.training.runs.worker.build_run import build_run
from transformer_core.training.runs.worker.estimate import estimate
from transformer_core.training.runs.worker.memory import MB, RUN_MEMORY, bound, needed
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.tasks.make import make_task

CPU = torch.device("cpu")


@pytest.mark.nightly
def test_the_form_filled_with_the_largest_numbers_is_refused_before_its_memory_is_taken(monkeypatch):
    monkeypatch.setenv(RUN_MEMORY, "2000")
    largest = change(QUICK, n_layers=12, d_model=512, n_heads=8, d_ff=2_048, batch_size=512, max_len=512)
    before = _peak()
    with pytest.raises(RunError, match=r"the run needs about [0-9,]+ MB of memory, and 2,000 MB may be used: choose a"):
        estimate(largest, None, make_task)
    assert _peak() - before < 1_000 * MB


def _peak() -> int:
    resource = pytest.importorskip("resource")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize("preset", nightly_but([QUICK, REVERSE, CHARACTERS], [REVERSE]))
def test_a_larger_batch_and_a_deeper_model_need_more(preset):
    def of(**values):
        spec = change(preset, **{"batch_size": 64, "examples": 800, **values})
        task = make_task(spec, None, CPU)
        return needed(build_run(spec, task, CPU), task)

    assert 1.6 < of(batch_size=128) / of() < 2.4
    assert 1.6 < of(n_layers=8) / of(n_layers=4) < 2.4


def test_counting_the_memory_leaves_none_taken():
    task = tiny_task(SPEC, None, CPU)
    run = build_run(SPEC, task, CPU)
    weights = [weakref.ref(weight) for weight in run.model.parameters()]
    assert needed(run, task) > 0
    del run
    gc.collect()
    assert not any(weight() is not None for weight in weights)


def test_counting_the_memory_draws_nothing_from_the_run():
    curves = []
    for counts in (False, True):
        task = tiny_task(SPEC, None, CPU)
        run = build_run(SPEC, task, CPU)
        if counts:
            assert needed(run, task) > 0
        curves.append([step.loss for step in run.steps()])
    assert curves[0] == curves[1]


def test_a_run_that_needs_too_much_fails_in_words_and_goes_on_where_there_is_room(tmp_path, monkeypatch):
    large = replace(SPEC, model=replace(SPEC.model, d_model=256, d_ff=512))
    store = RunList(tmp_path).create(large)
    monkeypatch.setenv(RUN_MEMORY, "1")
    Session(store, tiny_task, first_two).work()
    assert store.status().state == "failed"
    assert "MB of memory, and 1 MB may be used" in store.status().message
    monkeypatch.delenv(RUN_MEMORY)
    Session(store, tiny_task, first_two).work()
    assert store.status().state == "finished"


def test_the_bound_is_set_or_half_of_what_is_free_and_at_most_four_gigabytes(monkeypatch):
    monkeypatch.delenv(RUN_MEMORY, raising=False)
    for free, wanted in ((1 << 30, 1 << 29), (64 << 30, 4 << 30)):
        monkeypatch.setattr(memory, "free_memory", lambda _, free=free: free)
        assert bound(CPU) == wanted
    monkeypatch.setenv(RUN_MEMORY, "300")
    assert bound(CPU) == 300 * MB
    for value in ("0", "-1", "4 GB", "9" * 5_000):
        monkeypatch.setenv(RUN_MEMORY, value)
        with pytest.raises(RunError, match=r"VITRINE_RUN_MEMORY=.* must be a whole number of MB"):
            bound(CPU)


def test_free_memory_is_some_of_this_machines():
    assert 0 < memory.free_memory(CPU) < 1 << 50


GREEDY = """
import torch
from transformer_core.training.runs.errors import words_of
from transformer_core.training.runs.worker.memory import limit_memory

limit_memory(torch.device("cpu"))
kept = torch.ones(100 << 18)
try:
    torch.ones(4_000 << 18)
except Exception as error:
    print(words_of(error))
"""


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux counts what a process takes")
def test_a_worker_that_takes_far_more_than_a_run_may_fails_in_words():
    environment = {**os.environ, RUN_MEMORY: "200"}
    ended = subprocess.run([sys.executable, "-c", GREEDY], env=environment, capture_output=True, text=True)
    assert (ended.stdout.strip(), ended.stderr) == (NO_MEMORY, "")


def test_what_torch_says_of_too_little_memory_is_said_in_words():
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert words_of(raised.value) == NO_MEMORY
