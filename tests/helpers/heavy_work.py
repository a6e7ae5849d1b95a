"""Work for the tests of heavy work: what a process computes, step by step, wrongly or not to its end."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pages.kit.heavy import InParts, Part, Work
from tests.helpers import tiny_runs
from tests.helpers.tiny_runs import pass_gate
from transformer_core.bundle import Bundle
from transformer_core.progress import counted
from transformer_core.warm_process import ProcessDiedError

SECONDS_OF_A_PART = 5.0


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


@InParts
def in_parts(*, parts: int, gate: str) -> Work[tuple[int, ...]]:
    """Take a step in each of so many parts, and return which of them came to their end in time."""
    came = []
    for part in range(parts):
        with suppress(ProcessDiedError):
            yield Part(stepped, {"name": "", "steps": 1, "gate": gate}, part, parts, SECONDS_OF_A_PART)
            came.append(part)
    return tuple(came)


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


class Forked(tiny_runs.Forked):
    """A process of the pool."""

    @staticmethod
    def main() -> None:
        """Compute what is asked."""
        from pages.kit.heavy_process import serve

        serve()
