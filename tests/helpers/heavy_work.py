"""Work for the tests of heavy work: what a process computes, slowly, wrongly or not to its end."""

import os
import signal
import time
from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.bundle import Bundle
from transformer_core.progress import counted


@dataclass(frozen=True, eq=False)
class Result:
    values: np.ndarray
    process: int


def drawn(*, count: int) -> Result:
    """Draw numbers from torch's own generator, as it is at a script's start."""
    return Result(torch.rand(count).numpy(), os.getpid())


def slow(*, name: str, steps: int, seconds: float) -> Result:
    """Take so many steps, each of so many seconds."""
    for _ in counted(range(steps)):
        time.sleep(seconds)
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
