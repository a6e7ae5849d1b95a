"""A training run as data for the film component: colours, points frame by frame, and one followed text.

Bytes are laid out as assets/components/film/reel.js reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pages.figures.matrix import Buffers, packed

LIGHT = (
    *("#c04909", "#2d72d3", "#00b56b", "#871082", "#d490cd", "#c78b09", "#13745f", "#4936b6", "#d34a9a", "#8a88fa"),
    *("#99122e", "#f7857f", "#9b4fb2", "#7dacf3", "#2b91c1", "#a75579", "#743d60", "#729258", "#cf68d9", "#8f4f3e"),
)  # on white
DARK = (
    *("#fb942a", "#659ff4", "#3efac3", "#b75280", "#887c15", "#e5df00", "#795fe2", "#efa9e8", "#fe6270", "#1884b4"),
    *("#4ac9b4", "#02a671", "#bc87cd", "#a8d485", "#c25ccc", "#f6b915", "#95f472", "#d3694d", "#c7af6d", "#6180fe"),
)  # on near black
PALETTE = {"light": LIGHT, "dark": DARK}


def rim(hue: str, ink: str) -> str:
    """Return the outline of a held-out point: between its own hue and the ink, nearer to the ink."""
    pairs = zip(*(bytes.fromhex(colour[1:]) for colour in (hue, ink)), strict=True)
    return "#" + "".join(f"{round(one + 0.72 * (other - one)):02x}" for one, other in pairs)


MOST_STEPS = 2_000
MOST_CLASSES = 20
SURE = 255  # code of a probability of 1
CURVES = ("step", "loss", "learning_rate", "gradient_norm")


@dataclass(frozen=True, eq=False)
class Film:
    """Hold a run as it is shown.

    Figures do not import the engine, so the records are not named as types: Status, Curves, Frame, Layout and
    StoredPoints of transformer_core/training/runs/store/records.py are handed in as a RunStore returns them.

    Shapes:
        predicted, certainty: (point,) each

    Args:
        id, name: of the run.
        kind: of model, an entry of bundle.MODELS.
        labels: names of the classes, if any.
        status: the Status.
        curves: the Curves.
        frames: the Frames in their order.
        layouts: the Layouts, in the order of their frames.
        predicted: class numbers of the points, by number of frame.
        certainty: probabilities of those classes, by number of frame.
        baselines: accuracies to compare with.
        points: the StoredPoints, if any.
        steps_per_epoch: of training.
        frames_planned: how many frames there will be.
        histograms: the Histograms of transformer_core/training/histograms.py, by number of frame; runs of earlier
            versions have none.
        apart: from where on held-out points are apart, as analysis.coming_apart.Apart; None where nothing is known.

    Raises:
        ValueError: If points, layouts and predictions are not as many as each other.
    """

    id: str
    name: str
    kind: str
    labels: Sequence[str]
    status: Any
    curves: Any
    frames: Sequence[Any] = ()
    layouts: Sequence[Any] = ()
    predicted: Mapping[int, np.ndarray] = field(default_factory=dict)
    certainty: Mapping[int, np.ndarray] = field(default_factory=dict)
    baselines: Mapping[str, float] = field(default_factory=dict)
    points: Any = None
    steps_per_epoch: int = 0
    frames_planned: int = 0
    histograms: Mapping[int, Any] = field(default_factory=dict)
    apart: Any = None

    def __post_init__(self) -> None:
        if len(self.labels) > MOST_CLASSES:
            raise ValueError(f"labels names {len(self.labels)} classes, at most {MOST_CLASSES} have a colour")
        counts = {name: np.shape(getattr(self.curves, name)) for name in CURVES}
        if len(set(counts.values())) != 1:
            raise ValueError(f"steps must be arrays of one length, got {counts}")
        n_points = 0 if self.points is None else len(self.points.texts)
        if self.points is not None:
            _check("points.labels", self.points.labels, (n_points,))
            _check("points.held_out", self.points.held_out, (n_points,))
        for layout in self.layouts:
            _check(f"frame {layout.frame}: {layout.method}", layout.xy, (n_points, 2))
        for name in ("predicted", "certainty"):
            for number, array in getattr(self, name).items():
                _check(f"frame {number}: {name}", array, (n_points,))

    def laid_out(self, method: str) -> list[tuple[Any, Any]]:
        """Return the frames that have a layout by this method, each with it."""
        layouts = {layout.frame: layout for layout in self.layouts if layout.method == method}
        return [(frame, layouts[frame.number]) for frame in self.frames if frame.number in layouts]


def film_bytes(film: Film, *, after: int = -1, after_step: int = 0) -> bytes:
    """Pack what a browser lacks that has the frames up to `after` and the steps up to `after_step`.

    The points go along with the first frames alone; steps are thinned to at most MOST_STEPS.
    """
    buffers = Buffers()
    steps = thinned(film.curves, film.curves.step > after_step)
    header: dict[str, Any] = {
        "run": _packed_run(film),
        "baselines": _plain(film.baselines),
        "steps": {name: buffers.add(np.asarray(array, "<f4")) for name, array in steps.items()},
        "frames": [_packed_frame(film, frame, buffers) for frame in film.frames if frame.number > after],
    }
    if film.points is not None and after < 0:
        labels, held_out = (np.asarray(a, np.uint8) for a in (film.points.labels, film.points.held_out))
        texts = list(film.points.texts)
        header["points"] = {"labels": buffers.add(labels), "held_out": buffers.add(held_out), "texts": texts}
    return packed(header, buffers)


def thinned(curves: Any, kept: np.ndarray | slice = slice(None), most: int = MOST_STEPS) -> dict[str, np.ndarray]:
    """Return the kept steps of Curves, by name, as means of equal intervals, at most `most` of them.

    An interval has the number of its last step, so that a browser that has it asks for what follows.
    """
    step, *others = (np.asarray(getattr(curves, name), np.float64)[kept] for name in CURVES)
    if len(step) <= most:
        return dict(zip(CURVES, (step, *others), strict=True))
    ends = np.linspace(0, len(step), most + 1).astype(int)
    sizes = np.diff(ends)
    means = (np.add.reduceat(array, ends[:-1]) / sizes for array in others)
    return dict(zip(CURVES, (step[ends[1:] - 1], *means), strict=True))


def _packed_run(film: Film) -> dict[str, Any]:
    status = film.status
    return {
        "id": film.id,
        "name": film.name,
        "kind": film.kind,
        "labels": list(film.labels),
        "state": status.state,
        "step": status.step,
        "total_steps": status.total_steps,
        "steps_per_epoch": film.steps_per_epoch,
        "seconds": _finite(status.seconds),
        "seconds_left": _finite(status.seconds_left),
        "message": status.message,
        "queue_place": status.queue_place,
        "frames_planned": film.frames_planned,
        "alive": status.alive,
        "apart": None if film.apart is None else asdict(film.apart),
    }


def _packed_frame(film: Film, frame: Any, buffers: Buffers) -> dict[str, Any]:
    layouts = {
        layout.method: {"xy": buffers.add(np.asarray(layout.xy, "<f4")), "measures": _plain(layout.measures)}
        for layout in film.layouts
        if layout.frame == frame.number
    }
    header: dict[str, Any] = {"number": int(frame.number), "step": int(frame.step), "epoch": _finite(frame.epoch)}
    header |= {"measures": _plain(frame.measures), "layouts": layouts}
    if (found := film.histograms.get(frame.number)) is not None:
        arrays = {name: buffers.add(np.asarray(getattr(found, name), "<f4")) for name in ("counts", "rms")}
        header["histograms"] = {"groups": list(found.groups), **arrays}
    if frame.number in film.predicted:
        header["predicted"] = buffers.add(np.asarray(film.predicted[frame.number], np.uint8))
    if frame.number in film.certainty:
        header["certainty"] = buffers.add(coded(film.certainty[frame.number]))
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


def followed_bytes(followed_text: Any) -> bytes:
    """Pack a followed text: the header's length, the header (JSON), and each frame's weights, one byte a weight.

    Args:
        followed_text: a FollowedText of transformer_core/analysis/followed_text.py; its weights may be codes already.
    """
    buffers = Buffers()
    names = ("text", "tokens", "key_tokens", "goal", "attention_name")
    header = {name: getattr(followed_text, name) for name in names}
    return packed(header | {"frames": [_packed_moment(one, buffers) for one in followed_text.frames]}, buffers)


def _packed_moment(moment: Any, buffers: Buffers) -> dict[str, Any]:
    places = {method: [float(x), float(y)] for method, (x, y) in moment.xy.items() if np.isfinite([x, y]).all()}
    header: dict[str, Any] = {"number": int(moment.number), "attention": buffers.add(coded(moment.attention))}
    header |= {"sample": moment.sample, "xy": places}
    if moment.probabilities is not None:
        header["probabilities"] = [float(value) for value in np.nan_to_num(moment.probabilities)]
    if moment.tokens is not None:
        header["tokens"] = moment.tokens
    return header
