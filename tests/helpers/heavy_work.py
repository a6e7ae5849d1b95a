"""Work for the tests of heavy work: what a process computes, here or on a node, step by step or not to its end."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tests.helpers import tiny_runs
from tests.helpers.tiny_runs import pass_gate
from transformer_core.bundle import Bundle
from transformer_core.heavy_process import serve
from transformer_core.progress import counted

NODE = "RAY_RAYLET_PID"  # variable of what computes on a node


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


def dying() -> bool:
    """End the process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def placed(*, number: int) -> bool:
    """Tell whether this computes on a node."""
    return NODE in os.environ


def dying_there(*, number: int) -> bool:
    """End the process where it is a node's."""
    return dying() if placed(number=number) else True


class Forked(tiny_runs.Forked):
    """A process of the pool."""

    @staticmethod
    def main() -> None:
        """Compute what is asked."""
        serve()
