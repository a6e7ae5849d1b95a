"""A sweep: a run at each combination of values of one or two settings, with several seeds, and what came of them.

A sweep has no record of its own: its runs are those that were asked to do the same, whoever started them and when, so
that a link rebuilds it, what is there is never computed twice, and what is missing can be started at any time.
"""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from transformer_core.shares import mean_interval
from transformer_core.training.runs.settings import NAMES, VOCABULARY, called, change
from transformer_core.training.runs.store.records import ENDED
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec

MOST_SETTINGS, MOST_VALUES, MOST_SEEDS, MOST_RUNS = 2, 6, 10, 36
FALLING = ("held_out_loss", "train_loss")  # the smaller, the better
MEASURES = ("held_out_accuracy", "train_accuracy", *FALLING)


@dataclass(frozen=True)
class Sweep:
    """What is tried: a base, the values of one or two of its settings, and seeds.

    Args:
        base: spec of the runs; its own values of the settings and its seed do not count.
        values: of each setting, by its name.
        seeds: of the runs at each combination.

    Raises:
        ValueError: too many or too few of something, or a combination that is no run; the message names it.
    """

    base: RunSpec
    values: Mapping[str, tuple[Any, ...]]
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= MOST_SETTINGS:
            raise ValueError(f"values has {len(self.values)} settings; a sweep has 1 to {MOST_SETTINGS}")
        for name, values in self.values.items():
            if name not in NAMES or name in VOCABULARY:
                raise ValueError(f"{name!r:.60} is no setting that a sweep can change")
            if not 1 <= len(values) <= MOST_VALUES or len(set(values)) < len(values):
                raise ValueError(f"{name} has {len(values)} values; it takes 1 to {MOST_VALUES} different ones")
        if not 1 <= len(self.seeds) <= MOST_SEEDS or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds has {len(self.seeds)} entries; it takes 1 to {MOST_SEEDS} different ones")
        if self.base.takes_weights:
            raise ValueError(f"base={self.base.name!r:.60} begins with weights of another run, which fix its settings")
        if len(self) > MOST_RUNS:
            raise ValueError(
                f"{len(self)} runs are asked for, and a sweep has at most {MOST_RUNS}; take fewer values or seeds"
            )
        for cell in self.cells:
            self.spec(cell, self.seeds[0])

    def __len__(self) -> int:
        return math.prod(map(len, self.values.values())) * len(self.seeds)

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        """Every combination of values, by setting; the last setting changes first."""
        return [dict(zip(self.values, one, strict=True)) for one in itertools.product(*self.values.values())]

    def spec(self, cell: Mapping[str, Any], seed: int) -> RunSpec:
        """Return the spec of one run.

        Raises:
            ValueError: the values do not go together.
        """
        spec = replace(change(self.base, **cell, seed=seed), origin=None)
        return replace(spec, name=called(self.base, self.base, spec))

    def find(self, runs: Iterable[RunStore]) -> list[list[RunStore | None]]:
        """Return the run of each cell and seed; of several that do the same, one that has come furthest."""
        there: dict[str, RunStore] = {}
        for store in runs:
            if store.spec.origin is None or store.spec.origin.frame is None:
                work = _work(store.spec)
                if work not in there or _rank(store) > _rank(there[work]):
                    there[work] = store
        return [[there.get(_work(self.spec(cell, seed))) for seed in self.seeds] for cell in self.cells]

    def to_json(self) -> str:
        """Return what is tried as JSON."""
        values = {name: list(some) for name, some in self.values.items()}
        return json.dumps({"base": json.loads(self.base.to_json()), "values": values, "seeds": list(self.seeds)})


def _work(spec: RunSpec) -> str:
    """Return what a run does, without what it is called and who made it from what."""
    return replace(spec, name="run", origin=None).to_json()


def _rank(store: RunStore) -> int:
    state = store.status().state
    return 2 if state == "finished" else 1 if state not in ENDED else 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a sweep, as far as its runs have come.

    Shapes:
        final, best: (cell, seed), the measure at a run's last frame and at its best; nan where that has not ended
        seconds: (cell, seed), of training; nan likewise
        curves: of each cell (frame, 1 + seed): the step, and the measure of each seed, nan where it is not there yet

    Args:
        measure: an entry of MEASURES.
        states: of each cell and seed; "missing" where there is no run.
        runs: ids, likewise; "" where there is none.
    """

    measure: str
    final: np.ndarray
    best: np.ndarray
    seconds: np.ndarray
    curves: list[np.ndarray]
    states: list[list[str]]
    runs: list[list[str]]

    def spread(self, cell: int) -> tuple[float, float, float]:
        """Return the mean over seeds at the last frame and its bounds, as of mean_interval."""
        return mean_interval(self.final[cell])

    def difference(self, first: int, second: int, seeds: int | None = None) -> tuple[float, float, float]:
        """Return by how much the second cell is above the first, seed by seed, as of mean_interval.

        Args:
            seeds: of how many seeds, the first ones; of all by default.
        """
        return mean_interval((self.final[second] - self.final[first])[:seeds])

    def verdict(self, first: int = 0, second: int = 1) -> str:
        """Return whether a cell is "better" or "worse" than the first, or "within" where the interval holds 0."""
        _, low, high = self.difference(first, second)
        sign = -1 if self.measure in FALLING else 1
        if math.isnan(low) or low <= 0 <= high:
            return "within"
        return "better" if sign * low > 0 else "worse"

    def seeds_needed(self, first: int = 0, second: int = 1) -> int | None:
        """Return the fewest seeds, counted from the first, from which on every interval of the difference of two cells
        leaves 0 out; None where the last one holds it."""
        needed = None
        for count in range(self.final.shape[1], 1, -1):
            _, low, high = self.difference(first, second, count)
            if math.isnan(low) or low <= 0 <= high:
                break
            needed = count
        return needed

    def moved(self, sizes: tuple[int, int]) -> np.ndarray:
        """Return how far each of two settings moves the measure: the range of its values' means over the other's.

        Args:
            sizes: how many values each setting has.

        Shapes:
            returns: (2, seed)
        """
        grid = self.final.reshape(*sizes, -1)
        return np.stack([np.ptp(grid.mean(1), 0), np.ptp(grid.mean(0), 0)])

    def further(self, sizes: tuple[int, int]) -> str:
        """Return which of two settings moves the measure further with every seed: "first", "second", else "within"."""
        first, second = self.moved(sizes)
        return "first" if (first > second).all() else "second" if (second > first).all() else "within"

    @property
    def ended(self) -> bool:
        """Whether every run has finished."""
        return all(state == "finished" for states in self.states for state in states)


def outcome(sweep: Sweep, found: Sequence[Sequence[RunStore | None]]) -> Outcome:
    """Return what came of a sweep's runs.

    Args:
        found: as Sweep.find returns them.

    Raises:
        RunError: a run cannot be read.
    """
    shape = (len(sweep.cells), len(sweep.seeds))
    final, best, seconds = (np.full(shape, np.nan) for _ in range(3))
    states = [["missing"] * shape[1] for _ in range(shape[0])]
    curves: list[np.ndarray] = []
    measure = measure_of(sweep.base)
    for cell, stores in enumerate(found):
        rows: dict[int, np.ndarray] = {}
        for seed, store in enumerate(stores):
            if store is None:
                continue
            status = store.status()
            states[cell][seed] = status.state
            values = {frame.step: frame.measures.get(measure, math.nan) for frame in store.frames()}
            for step, value in values.items():
                rows.setdefault(step, np.full(shape[1], np.nan))[seed] = value
            if status.state == "finished" and values:
                final[cell, seed] = values[max(values)]
                best[cell, seed] = (np.nanmin if measure in FALLING else np.nanmax)(list(values.values()))
                seconds[cell, seed] = status.seconds
        curves.append(np.array([[step, *rows[step]] for step in sorted(rows)]).reshape(-1, 1 + shape[1]))
    return Outcome(
        measure, final, best, seconds, curves, states, [[one.id if one else "" for one in row] for row in found]
    )


def measure_of(spec: RunSpec) -> str:
    """Return the measure by which runs of a kind of model are compared: right answers held out, or the loss there."""
    return "held_out_accuracy" if spec.data.kind in ("classifier", "translation") else "held_out_loss"
