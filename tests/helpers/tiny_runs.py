"""A tiny task and a worker that knows only it, so that runs are tested in milliseconds a step."""

import multiprocessing
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from transformer_core.config import ModelConfig
from transformer_core.text import Tokenizer
from transformer_core.training.batching import LabelledBatch, bucketed, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import classification
from transformer_core.training.runs.queue.slots import MOST_PAUSES, MOST_RUNS
from transformer_core.training.runs.store.records import Layout
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker import process
from transformer_core.training.runs.worker.build_run import build_run
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.spec import DataSpec, RunSpec
from transformer_core.training.tasks.task import Points, Task

TEXTS = [f"{a} {b} {c}" for a in ("a", "the", "no") for b in ("good", "bad", "fine") for c in ("film", "play", "song")]
LABELS = [int(("bad" in text) != ("no" in text)) for text in TEXTS]
TOKENIZER = Tokenizer.train("word", TEXTS, vocab_size=30, min_frequency=1)
ROWS = [list(encoding.ids) for encoding in TOKENIZER.encode_batch(TEXTS)]
BATCH_SIZE, SLOW, BAD_SEED = 9, "slow", 666
SPEC = RunSpec(
    name="tiny",
    data=DataSpec(examples=64, held_out=32),
    model=ModelConfig(vocab_size=16, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=8, dropout=0.1),
    training=TrainConfig(batch_size=BATCH_SIZE, epochs=5, seed=3),
    frames=5,
    points=40,
    threads=1,
)
WITH_DATA = replace(SPEC, data=DataSpec(source="table", file="rows.csv"))


def tiny_task(spec: RunSpec, folder: Path | None, device: torch.device) -> Task:
    """Return a task of 27 sentences; each step of a spec named slow takes 30 ms."""

    if spec.training.seed == BAD_SEED:
        raise ValueError("there is nothing to learn from")

    def objective(model, batch):
        time.sleep(0.03 if spec.name.startswith(SLOW) else 0.0)
        return classification(model, batch)

    def batches(epoch):
        rng = np.random.default_rng((spec.training.seed, epoch))
        for places in bucketed([len(row) for row in ROWS], BATCH_SIZE, rng):
            yield LabelledBatch(padded([ROWS[p] for p in places], 0), torch.tensor([LABELS[p] for p in places]))

    def measure(model, thorough):
        torch.rand(1)  # whatever a measure draws changes nothing
        assert not model.training
        accuracy = float((model(padded(ROWS, 0)).argmax(-1) == torch.tensor(LABELS)).float().mean())
        return {"train_accuracy": accuracy, "held_out_accuracy": accuracy, "train_loss": 1.0, "held_out_loss": 1.0}

    config = replace(spec.model, vocab_size=TOKENIZER.vocab_size, target_vocab_size=None, pad_id=0)
    held_out = [number % 2 == 1 for number in range(len(TEXTS))]
    return Task(
        kind="classifier",
        config=config,
        tokenizer=TOKENIZER,
        objective=objective,
        batches=batches,
        steps_per_epoch=3,
        measure=measure,
        prompt=TEXTS[0],
        labels=("negative", "positive"),
        baselines={"majority": 0.5},
        points=Points(texts=TEXTS, labels=LABELS, held_out=held_out, token_ids=padded(ROWS, 0)),
    )


def first_two(store: RunStore):
    """Lay out the points by their first two coordinates."""

    def lay_out(frame, vectors):
        return [
            Layout(frame, method, vectors[:, :2], {"trustworthiness": 1.0, "displacement": float("nan")})
            for method in ("tsne", "pca")
        ]

    return lay_out


COMMAND = (sys.executable, "-m", "tests.helpers.tiny_runs")
WORKERS = multiprocessing.get_context("forkserver")
WORKERS.set_forkserver_preload(["tests.helpers.tiny_runs", "torch._dynamo"])  # which the first optimizer imports


def run_session(folder: Path, most_runs: int, most_pauses: int) -> None:
    """Do what a worker process does with a run, without a launcher."""
    os.environ[MOST_RUNS], os.environ[MOST_PAUSES] = str(most_runs), str(most_pauses)
    torch.set_num_threads(1)
    session = Session(RunStore(folder), tiny_task, first_two)
    signal.signal(signal.SIGTERM, lambda *_: session.control.stop())
    session.work()


def called(store: RunStore, *, most_runs: int = 2, most_pauses: int = 2):
    """Start a worker for a run, as a process that starts quickly."""
    process = WORKERS.Process(target=run_session, args=(store.folder, most_runs, most_pauses))
    process.start()
    return process


def own_curve(spec: RunSpec) -> list[tuple]:
    """Return the curve of a spec, computed here without worker, database and frames."""
    run = build_run(spec, tiny_task(replace(spec, name="quick"), None, torch.device("cpu")), torch.device("cpu"))
    return [(step.step, step.loss, step.learning_rate, step.gradient_norm) for step in run.steps()]


def stored_curve(store: RunStore) -> list[tuple]:
    """Return the curve that a run has on disk."""
    curves = store.curves()
    columns = (curves.step, curves.loss, curves.learning_rate, curves.gradient_norm)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def wait_for(condition, seconds: float = 60.0):
    """Return what a condition gives once that is true."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
    return found


if __name__ == "__main__":
    process.main(tiny_task, first_two)
