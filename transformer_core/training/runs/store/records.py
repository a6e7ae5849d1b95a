"""The records of a run, as pages and figures get them: status, curves, frames, layouts, points, estimate."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

State = Literal["queued", "starting", "running", "paused", "stopped", "finished", "failed", "interrupted"]
Method = Literal["tsne", "pca"]
Request = Literal["pause", "resume", "stop"]
REQUESTS: tuple[Request, ...] = get_args(Request)
ENDED = ("stopped", "finished", "failed", "interrupted")
WISHED: dict[str, State] = {"pause": "paused", "stop": "stopped"}  # what a request leads to


@dataclass(frozen=True)
class Shortage:
    """What a run waits for on a cluster, as the cluster names it: "1 CPU, 0.5 GPU".

    Args:
        needs: the run's.
        free, whole: of the cluster.
    """

    needs: str
    free: str
    whole: str


@dataclass(frozen=True)
class Presence:
    """How far a run is from computing, as what runs it knows; nothing of it is in the run's own folder.

    Args:
        alive: a worker has the run: it computes, or pauses and keeps what it has in memory.
        starting: it waits for a worker, or one is being started for it.
        queue_place: among those that wait, from 1; 0 where it does not wait.
        paused: it was asked to pause, and has let its worker go.
        shortage: what it waits for on a cluster; None elsewhere.
    """

    alive: bool = False
    starting: bool = False
    queue_place: int = 0
    paused: bool = False
    shortage: Shortage | None = None


@dataclass(frozen=True)
class Status:
    """The state of a run.

    Args:
        state: "queued" waits for a slot; "starting" makes the data and the model; "paused" may have let its worker go;
            "interrupted" is a run whose worker ended without writing a state, as when it is killed. All but "finished"
            can be resumed.
        step: number of steps taken.
        total_steps: of the whole run; 0 while it is not known.
        epoch: passes over the data so far, a fraction.
        seconds: of training so far, without pauses and waiting.
        seconds_left: estimated; None before the first step.
        message: what went wrong, or "".
        queue_place: 1 is the next to start; 0 when not queued.
        n_frames: number of published frames.
        updated: when the worker last wrote, in seconds since 1970.
        alive: whether a worker still holds the run; after "stopped" it may write for some more seconds.
        shortage: what a queued run waits for on a cluster; None elsewhere.
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
    shortage: Shortage | None = None


@dataclass(frozen=True, eq=False)
class Frame:
    """One kept moment of a run.

    Args:
        number: from 0.
        step: steps taken before it.
        epoch: passes over the data before it, a fraction.
        seconds: of training before it.
        measures: the finite ones of Task.measure.
    """

    number: int
    step: int
    epoch: float
    seconds: float
    measures: dict[str, float]


def evaluations(frames: Iterable[Frame]) -> list[tuple[int, float | None]]:
    """Return each frame's step and its held-out loss, None where it has none, as early_stopping.watch takes them."""
    return [(frame.step, frame.measures.get("held_out_loss")) for frame in frames]


@dataclass(frozen=True, eq=False)
class Layout:
    """The points of one frame in the plane.

    Shapes:
        xy: (point, 2) float32

    Args:
        frame: its number.
        method: "tsne" or "pca".
        measures: the finite ones that LayoutSequence returns: how far the layout can be trusted.
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
        loss: in nats, exactly as computed.
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


@dataclass(frozen=True)
class Estimate:
    """How long a run may take on this machine under its present load.

    Args:
        seconds: of the whole run with its frames, from the first step on.
        steps: of the whole run.
        seconds_a_step: of training.
        seconds_a_frame: of measuring, embedding points and saving weights; and of the layouts, where training uses all
            processors, so that they cannot be computed beside it.
        frames: that will be kept.
        n_parameters: of the model.
        seconds_to_prepare: of making the data; near zero where a former estimate has made them.
    """

    seconds: float
    steps: int
    seconds_a_step: float
    seconds_a_frame: float
    frames: int
    n_parameters: int
    seconds_to_prepare: float
