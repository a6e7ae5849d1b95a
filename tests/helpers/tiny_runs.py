"""A tiny task, whose steps a test may let one by one, and a worker that knows only it."""

import fcntl
import multiprocessing
import os
import signal
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from transformer_core.config import ModelConfig
from transformer_core.text import Tokenizer
from transformer_core.training.batching import LabelledBatch, bucketed, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import TrainingStep
from transformer_core.training.objectives import classification
from transformer_core.training.runs.queue import MOST_PAUSES, MOST_RUNS
from transformer_core.training.runs.store.records import Layout
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker import process
from transformer_core.training.runs.worker import session as session_module
from transformer_core.training.runs.worker.build_run import Prepared, build_run
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.spec import DataSpec, RunSpec
from transformer_core.training.tasks.task import Points, Task

TEXTS = [f"{a} {b} {c}" for a in ("a", "the", "no") for b in ("good", "bad", "fine") for c in ("film", "play", "song")]
LABELS = [int(("bad" in text) != ("no" in text)) for text in TEXTS]
TOKENIZER = Tokenizer.train("word", TEXTS, vocab_size=30, min_frequency=1)
ROWS = [list(encoding.ids) for encoding in TOKENIZER.encode_batch(TEXTS)]
BATCH_SIZE, BAD_SEED = 9, 666
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


def gate_of(folder: Path) -> Path:
    """Return where the gate of a run is, whichever folder it is computed in."""
    return Path(tempfile.gettempdir()) / f"vitrine-gate-{folder.name}"


def pass_gate(folder: Path) -> None:
    """Wait until the run's gate lets a step through; without a gate, or once it is open, at once."""
    try:
        end = os.open(gate_of(folder), os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    os.set_blocking(end, True)
    os.read(end, 1)
    os.close(end)


class Gate:
    """Lets a run take its steps one by one: each takes a byte out of a pipe. It is open when its maker has ended."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._path = folder, gate_of(folder)
        os.mkfifo(self._path)
        self._end: int | None = os.open(self._path, os.O_RDWR)

    def let(self, steps: int = 1) -> None:
        """Let the run take so many steps more."""
        assert self._end is not None
        os.write(self._end, bytes(steps))

    def left(self) -> int:
        """Return how many steps were let and have not begun."""
        assert self._end is not None
        return struct.unpack("i", fcntl.ioctl(self._end, termios.FIONREAD, bytes(4)))[0]

    def readers(self) -> set[int]:
        """Return the other processes that wait at the gate."""
        found = set()
        for end in Path("/proc").glob("[0-9]*/fd/*"):
            with suppress(OSError):
                if end.readlink() == self._path:
                    found.add(int(end.parts[2]))
        return found - {os.getpid()}

    def open(self) -> None:
        """Let all steps, from now on."""
        if self._end is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._end)
            self._end = None


def tiny_task(spec: RunSpec, folder: Path | None, device: torch.device) -> Task:
    """Return a task of 27 sentences."""

    if spec.training.seed == BAD_SEED:
        raise ValueError("there is nothing to learn from")

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
        objective=classification,
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


def step_by_step() -> None:
    """Let each step of this process's runs wait for their gate, and let readers see it."""
    prepare = session_module.prepare

    def prepared(store: RunStore, *others: Any) -> Prepared:
        made = prepare(store, *others)
        run, taken = made.run, made.run.steps()

        def steps() -> Iterator[TrainingStep]:
            while run.step < run.total_steps:
                pass_gate(store.folder)
                yield next(taken)

        run.steps = steps  # type: ignore[method-assign]
        return made

    session_module.prepare = prepared
    session_module.SECONDS_BETWEEN_COMMITS = 0.0


def run_session(folder: Path, most_runs: int, most_pauses: int) -> None:
    """Do what a worker process does with a run, without a launcher."""
    os.environ[MOST_RUNS], os.environ[MOST_PAUSES] = str(most_runs), str(most_pauses)
    torch.set_num_threads(1)
    step_by_step()
    session = Session(RunStore(folder), tiny_task, first_two)
    signal.signal(signal.SIGTERM, lambda *_: session.control.stop())
    session.work()


def called(store: RunStore, *, most_runs: int = 2, most_pauses: int = 2):
    """Start a worker for a run, as a process that starts quickly."""
    process = WORKERS.Process(target=run_session, args=(store.folder, most_runs, most_pauses))
    process.start()
    return process


class Forked:
    """A process as subprocess.Popen would start it, forked where everything is imported already."""

    def __init__(self, *_: Any, stderr: IO[bytes] | None = None, env: Mapping[str, str] | None = None, **__: Any):
        reads, asks = WORKERS.Pipe(duplex=False)
        answered, answers = WORKERS.Pipe(duplex=False)
        ends = [reads, answers, *([Connection(os.dup(stderr.fileno()))] if stderr is not None else [])]
        self._process = WORKERS.Process(target=_become, args=(type(self), ends, dict(env or {})), daemon=True)
        self._process.start()
        self.pid = self._process.pid
        self.stdin, self.stdout = os.fdopen(os.dup(asks.fileno()), "wb"), os.fdopen(os.dup(answered.fileno()), "rb")
        for end in (*ends, asks, answered):
            end.close()
        self._ended = threading.Event()
        threading.Thread(target=self._reap, daemon=True).start()

    @staticmethod
    def main() -> None:
        """Do what the process is for."""
        torch.set_num_threads(1)
        main()

    def _reap(self) -> None:
        self._process.join()
        self._ended.set()

    def poll(self) -> int | None:
        """Return how it ended; None while it runs."""
        return self._process.exitcode if self._ended.is_set() else None

    def wait(self) -> int | None:
        """Wait for its end."""
        assert self._ended.wait(60)
        return self.poll()

    def kill(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):  # it has ended, and this is not known yet
            if not self._ended.is_set():
                os.kill(self.pid, signal.SIGKILL)

    def communicate(self) -> None:
        """Close its ends and wait for its end."""
        self.stdin.close()
        self.stdout.close()
        self.wait()


def _become(kind: type[Forked], ends: list[Connection], env: Mapping[str, str]) -> None:
    os.setsid()
    os.environ.update(env)
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    kind.main()


def own_curve(spec: RunSpec) -> list[tuple]:
    """Return the curve of a spec, computed here without worker, database and frames."""
    run = build_run(spec, tiny_task(spec, None, torch.device("cpu")), torch.device("cpu"))
    return [(step.step, step.loss, step.learning_rate, step.gradient_norm) for step in run.steps()]


def stored_curve(store: RunStore) -> list[tuple]:
    """Return the curve that a run has on disk."""
    curves = store.curves()
    columns = (curves.step, curves.loss, curves.learning_rate, curves.gradient_norm)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return what a condition gives once that is true; the bound is for a failure alone."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
    return found


def in_state(store: RunStore, *states: str) -> Any:
    """Wait until readers see a run in one of these states; return its status."""
    return wait_for(lambda: status if (status := store.status()).state in states else None)


def main() -> None:
    """Be a worker."""
    step_by_step()
    process.main(tiny_task, first_two)


if __name__ == "__main__":
    main()
