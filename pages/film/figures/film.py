"""The film of a training run as bytes for the browser, whole or what has come since."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from pages.figures.matrix import Buffers, packed

MOST_STEPS = 2_000
MOST_CLASSES = 20
SURE = 255  # code of a probability of 1


@dataclass(frozen=True)
class FilmRun:
    """Say what a run is and how far it has come.

    Args:
        id, name: of the run.
        kind: of model: "classifier", "translation", "gpt" or "bert".
        labels: names of the classes, if any.
        state: "queued", "starting", "running", "paused", "stopped", "finished", "failed" or "interrupted".
        step, total_steps: taken, and planned.
        steps_per_epoch: of training.
        seconds, seconds_left: of training so far, and expected.
        message: what went wrong, or "".
        queue_place: 0 where it is not queued.
        frames_planned: how many frames there will be.
        alive: whether its worker still writes, whatever the state.
    """

    id: str
    name: str
    kind: str
    labels: Sequence[str]
    state: str
    step: int
    total_steps: int
    steps_per_epoch: int = 0
    seconds: float = 0.0
    seconds_left: float | None = None
    message: str = ""
    queue_place: int = 0
    frames_planned: int = 0
    alive: bool = False


@dataclass(frozen=True, eq=False)
class FilmPoints:
    """Name the examples whose sentence vectors are followed.

    Shapes:
        labels, held_out: (point,)
    """

    texts: Sequence[str]
    labels: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True, eq=False)
class FilmSteps:
    """Hold what every step of training measured.

    Shapes:
        step, loss, learning_rate, gradient_norm: (step,)
    """

    step: np.ndarray
    loss: np.ndarray
    learning_rate: np.ndarray
    gradient_norm: np.ndarray


@dataclass(frozen=True, eq=False)
class FilmLayout:
    """Place the points of one frame on a plane.

    Shapes:
        xy: (point, 2)

    Args:
        measures: trustworthiness, displacement, neighbours_train and neighbours_held_out.
    """

    xy: np.ndarray
    measures: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class FilmFrame:
    """Hold one moment of a run.

    Shapes:
        predicted: (point,), class numbers; certainty: (point,), the probabilities of those classes
    """

    number: int
    step: int
    epoch: float
    measures: Mapping[str, float]
    layouts: Mapping[str, FilmLayout] = field(default_factory=dict)
    predicted: np.ndarray | None = None
    certainty: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Film:
    """Hold a run as it is shown: what it is, its curves, and its frames in their order.

    Raises:
        ValueError: If points, layouts and predictions are not as many as each other.
    """

    run: FilmRun
    steps: FilmSteps
    frames: Sequence[FilmFrame] = ()
    baselines: Mapping[str, float] = field(default_factory=dict)
    points: FilmPoints | None = None

    def __post_init__(self) -> None:
        if len(self.run.labels) > MOST_CLASSES:
            raise ValueError(f"labels names {len(self.run.labels)} classes, at most {MOST_CLASSES} have a colour")
        counts = {name: np.shape(array) for name, array in vars(self.steps).items()}
        if len(set(counts.values())) != 1:
            raise ValueError(f"steps must be arrays of one length, got {counts}")
        n_points = 0 if self.points is None else len(self.points.texts)
        if self.points is not None:
            _check("points.labels", self.points.labels, (n_points,))
            _check("points.held_out", self.points.held_out, (n_points,))
        for frame in self.frames:
            for method, layout in frame.layouts.items():
                _check(f"frame {frame.number}: {method}", layout.xy, (n_points, 2))
            if frame.predicted is not None:
                _check(f"frame {frame.number}: predicted", frame.predicted, (n_points,))
            if frame.certainty is not None:
                _check(f"frame {frame.number}: certainty", frame.certainty, (n_points,))


def film_bytes(film: Film, *, after: int = -1, after_step: int = 0) -> bytes:
    """Pack what a browser lacks that has the frames up to `after` and the steps up to `after_step`.

    The points go along with the first frames alone; steps are thinned to at most MOST_STEPS.
    """
    buffers = Buffers()
    steps = thinned(film.steps, film.steps.step > after_step)
    header: dict[str, Any] = {
        "run": asdict(replace(film.run, labels=list(film.run.labels))),
        "baselines": _plain(film.baselines),
        "steps": {name: buffers.add(np.asarray(array, "<f4")) for name, array in vars(steps).items()},
        "frames": [_packed_frame(frame, buffers) for frame in film.frames if frame.number > after],
    }
    header["run"] |= {name: _finite(header["run"][name]) for name in ("seconds", "seconds_left")}
    if film.points is not None and after < 0:
        labels, held_out = (np.asarray(a, np.uint8) for a in (film.points.labels, film.points.held_out))
        texts = list(film.points.texts)
        header["points"] = {"labels": buffers.add(labels), "held_out": buffers.add(held_out), "texts": texts}
    return packed(header, buffers)


def thinned(steps: FilmSteps, kept: np.ndarray | slice = slice(None), most: int = MOST_STEPS) -> FilmSteps:
    """Return the kept steps as means of equal stretches, at most `most` of them.

    A stretch bears the number of its last step, so that a browser that has it asks for what follows.
    """
    step, *others = (np.asarray(array, np.float64)[kept] for array in vars(steps).values())
    if len(step) <= most:
        return FilmSteps(step, *others)
    ends = np.linspace(0, len(step), most + 1).astype(int)
    sizes = np.diff(ends)
    means = (np.add.reduceat(array, ends[:-1]) / sizes for array in others)
    return FilmSteps(step[ends[1:] - 1], *means)


def _packed_frame(frame: FilmFrame, buffers: Buffers) -> dict[str, Any]:
    layouts = {
        method: {"xy": buffers.add(np.asarray(layout.xy, "<f4")), "measures": _plain(layout.measures)}
        for method, layout in frame.layouts.items()
    }
    header: dict[str, Any] = {"number": int(frame.number), "step": int(frame.step), "epoch": _finite(frame.epoch)}
    header |= {"measures": _plain(frame.measures), "layouts": layouts}
    if frame.predicted is not None:
        header["predicted"] = buffers.add(np.asarray(frame.predicted, np.uint8))
    if frame.certainty is not None:
        header["certainty"] = buffers.add(coded(frame.certainty))
    return header


def coded(values: np.ndarray) -> np.ndarray:
    """Return numbers from 0 to 1 as bytes, 1 as 255; what is not finite becomes 0, and bytes stay as they are."""
    if values.dtype == np.uint8:
        return values
    return np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0, 1) * SURE).astype(np.uint8)


def _check(name: str, array: np.ndarray, needed: tuple[int, ...]) -> None:
    if np.shape(array) != needed:
        raise ValueError(f"{name} has shape {np.shape(array)}, needed {needed}")


def _finite(number: float | None) -> float | None:
    return float(number) if number is not None and math.isfinite(number) else None


def _plain(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _finite(number) for name, number in numbers.items()}
