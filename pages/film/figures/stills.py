"""Layout of a film's map at one moment, and a run's curves as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pages.film.figures.colours import PALETTE
from pages.film.figures.film import CURVES, Film

EDGE, HEADING, KEY_LINE, SMALL, LARGE = 24, 40, 24, 14, 16
DIAMOND = ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0))
GROUNDS = {"light": ("#ffffff", "#1f1b2e", "#5b586a"), "dark": ("#14121b", "#ece9f3", "#b3b0bd")}  # paper, ink, muted
TRAIN_ALPHA = 0.5


@dataclass(frozen=True, eq=False)
class Still:
    """Positions of everything on one picture of the map, in pixels.

    Shapes:
        xy: (point, 2)

    Args:
        title, measures: the lines above and below the map.
        radius: of a point.
        key: legend entries as (x, line, text, hue, whether held out), hue None for the two parts.
    """

    side: int
    height: int
    title: str
    measures: str
    xy: np.ndarray
    radius: float
    key: Sequence[tuple[float, int, str, str | None, bool]]


def still(film: Film, words: Mapping[str, str], at: float, *, method: str, theme: str, side: int) -> Still:
    """Lay out the map at a place between frames: 2.5 lies halfway from the third to the fourth.

    The axes hold all frames, so that what moves from picture to picture moved in the layout.

    Args:
        film: a run with points.
        words: film.* of the locale.
        at: from 0 to the number of frames less one.
        method: "tsne" or "pca".
        theme: "light" or "dark".
        side: width of the picture, and width and height of its map.

    Raises:
        ValueError: If the run has no points or no frame of that layout, or `at` lies outside.
    """
    frames = film.laid_out(method)
    if film.points is None or not frames:
        raise ValueError(f"run {film.id} has no frame with a map by {method}")
    if not 0 <= at <= len(frames) - 1:
        raise ValueError(f"at={at} must lie from 0 to {len(frames) - 1}, the last frame")
    every = np.stack([np.asarray(layout.xy, np.float64) for _, layout in frames])  # (frame, point, 2)
    low, high = np.nanmin(every, axis=(0, 1)), np.nanmax(every, axis=(0, 1))  # (2,)
    scale = (side - 2 * EDGE) / max(float((high - low).max()), 1e-9)
    index = min(int(at), len(frames) - 1)
    share = at - index
    share = share * share * (3 - 2 * share)
    here, there = every[index], every[min(index + 1, len(frames) - 1)]
    centred = (here + share * (there - here) - (low + high) / 2) * scale  # (point, 2)
    xy = np.stack([side / 2 + centred[:, 0], HEADING + side / 2 - centred[:, 1]], axis=1)
    frame, layout = frames[index]
    title = words["picture_title"].format(name=film.name, method=words[f"method_{method}"], step=frame.step)
    key = _key(film, words, PALETTE[theme], side)
    height = HEADING + side + KEY_LINE * (key[-1][1] + 2) + 8
    radius = min(6.0, max(2.4, 0.13 * side / math.sqrt(max(60, len(xy)))))
    return Still(side, height, title, _measures(layout.measures, words), xy, radius, key)


def _measures(measures: Mapping[str, float], words: Mapping[str, str]) -> str:
    def said(name: str, form: str) -> str:
        value = measures.get(name)
        return "–" if value is None or not math.isfinite(value) else format(value, form)

    return words["picture_measures"].format(
        held_out=said("neighbours_held_out", ".0%"),
        train=said("neighbours_train", ".0%"),
        trust=said("trustworthiness", ".3f"),
    )


def _key(film: Film, words: Mapping[str, str], hues: Sequence[str], side: int) -> list:
    entries = [(words["train"], None, False), (words["held_out"], None, True)]
    entries += [(label[:24], hue, False) for label, hue in zip(film.labels, hues, strict=False)]
    key, x, line = [], 4.0, 0
    for text, hue, held_out in entries:
        wide = 30 + sum(SMALL if ord(sign) > 0x2E7F else 0.6 * SMALL for sign in text)
        if x > 4 and x + wide > side:
            x, line = 4.0, line + 1
        key.append((x, line, text, hue, held_out))
        x += wide
    return key


def curves_csv(film: Film) -> str:
    """Write a run's curves, one row a step; a row at whose step a frame was taken has its measures, too.

    Numbers are written with all digits, so that reading them gives the same values.
    """
    measures = sorted({name for frame in film.frames for name in frame.measures})
    of_step = {int(step): row for step, *row in zip(*(getattr(film.curves, name) for name in CURVES), strict=True)}
    of_frame = {frame.step: frame for frame in film.frames}
    names = CURVES[1:]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["step", *names, "frame", "epoch", *measures])
    for step in sorted(of_step.keys() | of_frame.keys()):
        numbers = [repr(float(value)) for value in of_step.get(step, ())] or [""] * len(names)
        frame = of_frame.get(step)
        taken = ["", "", *[""] * len(measures)] if frame is None else [frame.number, repr(float(frame.epoch))]
        if frame is not None:
            taken += [repr(float(frame.measures[name])) if name in frame.measures else "" for name in measures]
        writer.writerow([step, *numbers, *taken])
    return buffer.getvalue()
