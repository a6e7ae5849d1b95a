"""What a run's folder holds, as read by pages: status, curves, frames, layouts, points.

Read next: schema.py.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

State = Literal["queued", "starting", "running", "paused", "stopped", "finished", "failed", "interrupted"]
Method = Literal["tsne", "pca"]
ENDED = ("stopped", "finished", "failed", "interrupted")


@dataclass(frozen=True)
class Status:
    """How a run is doing.

    Args:
        state: "queued" waits for a slot; "starting" makes the data and the model; "interrupted" is a run whose worker
            died without a word. All but "finished" can be resumed.
        step: steps taken so far.
        total_steps: of the whole run; 0 while it is not known.
        epoch: passes over the data so far, a fraction.
        seconds: of training so far, without pauses and waiting.
        seconds_left: a guess; None where there is nothing to guess from.
        message: what went wrong, or "".
        queue_place: 1 is the next to start; 0 when not queued.
        n_frames: published so far.
        updated: when the worker last wrote, in seconds since 1970.
        alive: whether a worker still has the run: after "stopped" it may take some seconds to write what is left.
    """

    state: State
    step: int = 0
    total_steps: int = 0
    epoch: float = 0.0
    seconds: float = 0.0
    seconds_left: float | None = None
    message: str = ""
    queue_place: int = 0
    n_frames: int = 0
    updated: float = 0.0
    alive: bool = False


@dataclass(frozen=True, eq=False)
class Frame:
    """One kept moment of a run.

    Args:
        number: from 0.
        step: steps taken before it.
        epoch: passes over the data before it, a fraction.
        seconds: of training before it.
        measures: those of Task.measure, without any that is not finite.
    """

    number: int
    step: int
    epoch: float
    seconds: float
    measures: dict[str, float]


@dataclass(frozen=True, eq=False)
class Layout:
    """The points of one frame in the plane.

    Shapes:
        xy: (point, 2) float32

    Args:
        frame: its number.
        method: "tsne" or "pca".
        measures: how far to trust the picture, without any that is not finite.
    """

    frame: int
    method: Method
    xy: np.ndarray
    measures: dict[str, float]


@dataclass(frozen=True, eq=False)
class Curves:
    """Every step of a run.

    Shapes:
        step, loss, learning_rate, gradient_norm, seconds: (step,)

    Args:
        loss: in nats, to the last digit as it was computed.
        seconds: of training up to and with this step.
    """

    step: np.ndarray
    loss: np.ndarray
    learning_rate: np.ndarray
    gradient_norm: np.ndarray
    seconds: np.ndarray


@dataclass(frozen=True, eq=False)
class StoredPoints:
    """The examples that a classifier's run follows.

    Shapes:
        labels: (point,) int64; held_out: (point,) bool
    """

    texts: list[str]
    labels: np.ndarray
    held_out: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)
