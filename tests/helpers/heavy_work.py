"""Work for the tests of heavy work: what a process computes, step by step, wrongly or not to its end."""

import os
import signal
import sys
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.helpers.tiny_runs import WORKERS, pass_gate
from transformer_core.bundle import Bundle
from transformer_core.progress import counted


@dataclass(frozen=True, eq=False)
class Result:
    values: np.ndarray
    process: int


def drawn(*, count: int) -> Result:
    """Draw numbers from torch's own generator, as it is at a script's start."""
    return Result(torch.rand(count).numpy(), os.getpid())


def stepped(*, name: str, steps: int = 3, gate: str = "") -> Result:
    """Take so many steps, each of which waits for a gate where there is one."""
    for _ in counted(range(steps)):
        pass_gate(Path(gate or name))
    return Result(np.arange(steps), os.getpid())


def of_model(*, bundle: Bundle, others: tuple[Bundle, ...]) -> Result:
    """Count parameters."""
    return Result(np.array([one.n_parameters for one in (bundle, *others)]), os.getpid())


def wrong(*, value: float) -> Result:
    """Refuse the value."""
    raise ValueError(f"value={value} must be something else")


def dying() -> Result:
    """End the process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class Forked:
    """A process of the pool as subprocess.Popen would start it, forked where torch is imported already."""

    def __init__(self, *_: Any, **__: Any) -> None:
        reads, asks = WORKERS.Pipe(duplex=False)
        answered, answers = WORKERS.Pipe(duplex=False)
        self._process = WORKERS.Process(target=_serve, args=(reads, answers), daemon=True)
        self._process.start()
        self._turn = threading.Lock()
        self.stdin, self.stdout = os.fdopen(os.dup(asks.fileno()), "wb"), os.fdopen(os.dup(answered.fileno()), "rb")
        for end in (reads, asks, answered, answers):
            end.close()

    def poll(self) -> int | None:
        """Return how it ended; None while it runs."""
        with self._turn:
            return self._process.exitcode

    def wait(self, seconds: float = 60.0) -> None:
        """Wait for its end."""
        with self._turn:
            self._process.join(seconds)
        assert self.poll() is not None

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            self._process.kill()

    def communicate(self) -> None:
        """Close its ends and wait."""
        self.stdin.close()
        self.stdout.close()
        self.wait()


def _serve(reads: Connection, answers: Connection) -> None:
    from pages.ui.heavy_process import serve

    os.dup2(reads.fileno(), 0)
    os.dup2(answers.fileno(), 1)
    reads.close()
    answers.close()
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    serve()
