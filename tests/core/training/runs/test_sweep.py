"""Sweeps: which runs they are, which are found again, and what their seeds tell."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.made_runs import SPECS, made_run
from transformer_core.shares import STUDENT, mean_interval
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.sweep import Outcome, Sweep, outcome
from transformer_core.training.spec import Origin

BASE = SPECS["classifier"]


def made(final: list[list[float]], measure: str = "held_out_accuracy") -> Outcome:
    """Make an outcome of which only the last values count."""
    values = np.array(final)
    states = [["finished"] * values.shape[1]] * len(values)
    return Outcome(measure, values, values, values, [], states, [[""] * values.shape[1]] * len(values))


def test_its_runs_are_every_combination_with_every_seed() -> None:
    sweep = Sweep(BASE, {"learning_rate": (0.1, 0.2), "norm_order": ("pre", "post")}, (0, 5))
    assert len(sweep) == 8
    assert [tuple(cell.values()) for cell in sweep.cells] == [(0.1, "pre"), (0.1, "post"), (0.2, "pre"), (0.2, "post")]
    spec = sweep.spec(sweep.cells[3], 5)
    assert (spec.training.learning_rate, spec.model.norm_order, spec.training.seed) == (0.2, "post", 5)
    assert change(spec, learning_rate=0.1, norm_order="pre", seed=0) == sweep.spec(sweep.cells[0], 0) or spec.name


@pytest.mark.parametrize(
    ("values", "seeds", "word"),
    [
        ({}, (0,), "settings"),
        ({"learning_rate": (1e-3,), "epochs": (1,), "n_layers": (1,)}, (0,), "settings"),
        ({"seed": (1, 2)}, (0,), "seed"),
        ({"vocab_size": (100,)}, (0,), "vocab_size"),
        ({"no_such": (1,)}, (0,), "no_such"),
        ({"learning_rate": ()}, (0,), "learning_rate"),
        ({"learning_rate": (1e-3, 1e-3)}, (0,), "different"),
        ({"learning_rate": (1e-3,)}, (), "seeds"),
        ({"learning_rate": (1e-3,)}, (1, 1), "seeds"),
        ({"n_heads": (3,)}, (0,), "n_heads"),
        ({"learning_rate": (1e-4, 1e-3, 1e-2), "n_layers": (1, 2, 3)}, tuple(range(5)), "45"),
    ],
)
def test_what_is_no_sweep_is_refused_by_its_name(values: dict, seeds: tuple, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Sweep(BASE, values, seeds)


def test_runs_that_did_the_same_are_found_whatever_they_are_called_and_whoever_made_them(tmp_path: Path) -> None:
    sweep = Sweep(BASE, {"activation": ("relu", "gelu")}, (0, 1))
    specs = [sweep.spec(cell, seed) for cell in sweep.cells for seed in sweep.seeds]
    first = made_run(tmp_path, replace(specs[0], name="mine", origin=Origin(run="a" * 10)), held_out=0.7)
    made_run(tmp_path, specs[1], state="stopped")
    again = made_run(tmp_path, specs[1], held_out=0.9)
    made_run(tmp_path, change(specs[2], dropout=0.5))
    found = sweep.find(RunList(tmp_path).all())
    assert [[one and one.id for one in row] for row in found] == [[first.id, again.id], [None, None]]
    result = outcome(sweep, found)
    np.testing.assert_allclose(result.final[0], [0.7, 0.9])
    assert np.isnan(result.final[1]).all()
    assert result.states == [["finished", "finished"], ["missing", "missing"]]
    steps, *values = result.curves[0].T
    assert steps.tolist() == [frame.step for frame in first.frames()]
    assert values[0].tolist() == [frame.measures["held_out_accuracy"] for frame in first.frames()]
    assert not result.ended


def test_a_run_that_has_not_finished_has_a_curve_and_no_result(tmp_path: Path) -> None:
    sweep = Sweep(BASE, {"activation": ("relu",)}, (0,))
    made_run(tmp_path, sweep.spec(sweep.cells[0], 0), state="stopped")
    result = outcome(sweep, sweep.find(RunList(tmp_path).all()))
    assert len(result.curves[0])
    assert np.isnan([result.final, result.best, result.seconds]).all()


@pytest.mark.parametrize("count", STUDENT)
def test_the_interval_is_students(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    mean, low, high = mean_interval(np.append(values, math.nan))
    half = STUDENT[count] * math.sqrt(((values - values.mean()) ** 2).sum() / (count - 1) / count)
    np.testing.assert_allclose([mean, low, high], [values.mean(), values.mean() - half, values.mean() + half])
    assert mean_interval(values[:1])[0] == values[0]
    assert math.isnan(mean_interval(values[:1])[1])


@pytest.mark.parametrize(
    ("second", "measure", "verdict"),
    [
        ([0.8, 0.81, 0.79], "held_out_accuracy", "better"),
        ([0.8, 0.81, 0.79], "held_out_loss", "worse"),
        ([0.5, 0.9, 0.4], "held_out_accuracy", "within"),
        ([0.4, 0.41, 0.39], "held_out_accuracy", "worse"),
        ([0.8, math.nan, math.nan], "held_out_accuracy", "within"),
    ],
)
def test_the_verdict_is_the_intervals(second: list[float], measure: str, verdict: str) -> None:
    assert made([[0.6, 0.61, 0.6], second], measure).verdict() == verdict


def test_the_seeds_needed_are_those_from_which_on_the_interval_stays_off_zero() -> None:
    apart = made([[0.0] * 5, [9.0, -9.0, 10.0, 10.0, 10.0]])
    bounds = [apart.difference(0, 1, count)[1] for count in range(2, 6)]
    assert apart.seeds_needed() == next((n for n in range(2, 6) if all(low > 0 for low in bounds[n - 2 :])), None)
    assert made([[0.0] * 4, [1.0, 1.1, 0.9, 1.0]]).seeds_needed() in (2, 3)
    assert made([[0.0] * 4, [1.0, -1.0, 1.0, -1.0]]).seeds_needed() is None


def test_of_two_settings_the_one_that_moves_further_with_every_seed() -> None:
    grid = np.array([[0.5, 0.6], [0.7, 0.8]])  # rows move by 0.2, columns by 0.1
    both = np.stack([grid, grid + 0.01], -1).reshape(4, 2)
    assert made(both.tolist()).further((2, 2)) == "first"
    np.testing.assert_allclose(made(both.tolist()).moved((2, 2)), [[0.2, 0.2], [0.1, 0.1]])
    other = np.stack([grid, grid.T], -1).reshape(4, 2)
    assert made(other.tolist()).further((2, 2)) == "within"
