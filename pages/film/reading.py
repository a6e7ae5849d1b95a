"""Runs as the film shows them, each read once for all who watch it and from then on only for what is new."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from pages.film.figures.film import Film, coded, film_bytes, followed_bytes
from pages.kit.runs import run_list
from transformer_core.analysis.coming_apart import Apart, coming_apart
from transformer_core.analysis.followed_text import FollowedText, follow_text
from transformer_core.training.runs.store.folder import follow
from transformer_core.training.runs.store.records import Curves, Frame, Layout, Status, StoredPoints
from transformer_core.training.runs.store.run_store import RunStore

SECONDS_FRESH = 0.25
MOST_RUNS, MOST_FOLLOWED_TEXTS, MOST_ANSWERS = 12, 16, 64
MOST_FOLLOWED_BYTES = 16 << 20
NO_STEPS = Curves(*(np.zeros(0) for _ in fields(Curves)))


class Reading:
    """One run as far as it has been read.

    Args:
        run: its id.

    Raises:
        RunError: from all methods, where there is no such run or it cannot be read.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._lock = threading.Lock()
        self._read_at = -SECONDS_FRESH
        self._forget()

    def film(self) -> Film:
        """Return the run as it is, or was a quarter of a second ago."""
        with self._lock:
            return self._fresh()

    def answer(self, after: int, after_step: int) -> bytes:
        """Return what a browser lacks that has the frames up to `after` and the steps up to `after_step`."""
        with self._lock:
            film = self._fresh()
            if (after, after_step) not in self._answers:
                _put(
                    self._answers,
                    (after, after_step),
                    film_bytes(film, after=after, after_step=after_step),
                    MOST_ANSWERS,
                )
            return self._answers[after, after_step]

    def _fresh(self) -> Film:
        if time.monotonic() - self._read_at >= SECONDS_FRESH:
            self._read()
            self._read_at = time.monotonic()
        return self._film

    def _forget(self) -> None:
        self._film = Film(self.run, self.run, "", (), Status("starting"), NO_STEPS)
        self._answers: OrderedDict[Any, bytes] = OrderedDict()

    def _read(self) -> None:
        """Read the status first: a run that says it is finished has published all its frames by then."""
        store = run_list().open(self.run)
        follow(store.folder)
        status = store.status()
        if status.n_frames < len(self._film.frames):
            self._forget()
        film = _longer(self._film, store, status, store.facts())
        if _summary(film) != _summary(self._film):
            self._film = film
            self._answers = OrderedDict()


class Listening:
    """One text in one run, as far as its frames have read it."""

    def __init__(self, run: str, text: str) -> None:
        self.run, self.text = run, text
        self._lock = threading.Lock()
        self._followed_text: FollowedText | None = None

    def answer(self, after: int) -> bytes:
        """Return what the models of the frames after number `after` make of the text.

        Raises:
            ValueError: the text cannot be followed; RunError: the run cannot be read.
        """
        with self._lock:
            known = self._followed_text.frames if self._followed_text else ()
            film = follow_text(run_list().open(self.run), self.text, known[-1].number if known else -1)
            if film.frames or self._followed_text is None:
                frames = (replace(frame, attention=coded(frame.attention)) for frame in film.frames)
                self._followed_text = replace(film, frames=(*known, *frames))
            followed_text = self._followed_text
        return followed_bytes(
            replace(followed_text, frames=tuple(frame for frame in followed_text.frames if frame.number > after))
        )

    def size(self) -> int:
        """Return about how many bytes are kept."""
        return sum(frame.attention.nbytes for frame in self._followed_text.frames) if self._followed_text else 0


_lock = threading.Lock()
_readings: OrderedDict[Any, Reading] = OrderedDict()
_listenings: OrderedDict[Any, Listening] = OrderedDict()


def reading(run: str) -> Reading:
    """Return what is known of a run; it is kept while it is among the last that anybody watched."""
    with _lock:
        found = _readings.get((run_list().root, run)) or Reading(run)
        _put(_readings, (run_list().root, run), found, MOST_RUNS)
        return found


def listening(run: str, text: str) -> Listening:
    """Return what is known of a text in a run."""
    with _lock:
        for key in [key for key, one in _listenings.items() if one.size() > MOST_FOLLOWED_BYTES]:
            del _listenings[key]
        found = _listenings.get((run_list().root, run, text)) or Listening(run, text)
        _put(_listenings, (run_list().root, run, text), found, MOST_FOLLOWED_TEXTS)
        return found


def _put(kept: OrderedDict, key: Any, value: Any, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


def _longer(film: Film, store: RunStore, status: Status, facts: dict[str, Any]) -> Film:
    """Return a film with what its run has recorded since; frames before layouts, which are published together."""
    points = film.points or store.points()
    last = film.frames[-1].number if film.frames else -1
    frames = store.frames(last)
    layouts = [layout for layout in store.layouts(last) if frames and layout.frame <= frames[-1].number]
    all_frames, all_layouts = [*film.frames, *frames], [*film.layouts, *layouts]
    guesses = {frame.number: store.predictions(frame.number) for frame in frames} if points else {}  # (point, class)
    return Film(
        id=store.id,
        name=store.spec.name,
        kind=facts.get("kind") or store.spec.kind,
        labels=tuple(facts.get("labels") or ()),
        status=_rounded(status),
        curves=_longer_curves(film.curves, store),
        frames=all_frames,
        layouts=all_layouts,
        predicted={**film.predicted, **{number: guess.argmax(1) for number, guess in guesses.items()}},
        certainty={**film.certainty, **{number: guess.max(1) for number, guess in guesses.items()}},
        baselines=facts.get("baselines") or {},
        points=points,
        histograms={**film.histograms, **store.histograms(last)},
        steps_per_epoch=int(facts.get("steps_per_epoch") or 0),
        frames_planned=store.spec.frames,
        apart=None if points is None else apart_by(all_frames, all_layouts, points),
    )


def apart_by(frames: Sequence[Frame], layouts: Sequence[Layout], points: StoredPoints) -> Apart | None:
    """Return from which of a run's frames on its held-out points are apart."""
    shares = {one.frame: one.measures.get("neighbours_held_out") for one in layouts if one.method == "tsne"}
    measured = [(one.number, one.step, shares.get(one.number)) for one in frames]
    known = [(number, step, share) for number, step, share in measured if share is not None]
    return coming_apart(known, points.labels[points.held_out])


def _rounded(status: Status) -> Status:
    """Return a status that stays the same while nothing changes that the film shows."""
    left = None if status.seconds_left is None else round(status.seconds_left)
    return replace(status, seconds=round(status.seconds, 1), seconds_left=left, epoch=0.0, updated=0.0)


def _longer_curves(curves: Curves, store: RunStore) -> Curves:
    new = store.curves(int(curves.step[-1]) if len(curves.step) else 0)
    return Curves(*(np.concatenate([array, getattr(new, name)]) for name, array in vars(curves).items()))


def _summary(film: Film) -> tuple:
    """Return what tells whether a film has changed."""
    run = (film.name, film.kind, film.labels, film.status, film.steps_per_epoch, film.frames_planned)
    return (*run, len(film.frames), len(film.curves.step))
