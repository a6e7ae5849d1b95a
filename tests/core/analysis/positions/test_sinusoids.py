"""The sinusoidal positions: the formula's identities hold for the paper's exponent, and fail for the doubled one."""

import math

import numpy as np
import pytest

from tests.helpers.engine import exactly
from transformer_core.analysis.positions.sinusoids import (
    STILL,
    compare_exponents,
    position_matrix,
    similarities,
    step_as_rotation,
    wavelengths,
    worst_fit,
)
from transformer_core.layers.positions import sinusoidal_table

SIZES = [(1, 2), (2, 6), (64, 128), (100, 30)]


@pytest.mark.parametrize(("length", "d_model"), SIZES)
def test_similarity_depends_on_the_distance_alone(length: int, d_model: int) -> None:
    found = position_matrix(length=length, d_model=d_model)
    assert found.deviation < 1e-5
    frequencies = 10_000.0 ** (-2 * np.arange(d_model // 2) / d_model)
    expected = np.cos(np.arange(length)[:, None] * frequencies).sum(1)  # sum over pairs of cos(k omega)
    np.testing.assert_allclose(found.dots, expected, atol=1e-5)
    np.testing.assert_allclose(found.cosines, expected / (d_model / 2), atol=1e-6)
    assert found.pairs == length * (length + 1) // 2


def test_deviation_is_the_greatest_over_all_pairs() -> None:
    table = np.random.default_rng(0).normal(size=(9, 4))
    _, _, deviation = similarities(table)
    brute = max(abs(table[i] @ table[j] - table[0] @ table[abs(i - j)]) for i in range(9) for j in range(9))
    assert deviation == pytest.approx(brute)


@pytest.mark.parametrize("doubled", [False, True])
def test_each_dimension_repeats_after_its_wavelength(doubled: bool) -> None:
    waves = wavelengths(4, doubled=doubled)
    table = sinusoidal_table(3, 4, doubled=doubled).double().numpy()
    angles = np.arange(3)[:, None] * 2 * math.pi / waves
    np.testing.assert_allclose(table[:, 0::2], np.sin(angles[:, 0::2]), atol=1e-6)
    np.testing.assert_allclose(table[:, 1::2], np.cos(angles[:, 1::2]), atol=1e-6)


@pytest.mark.parametrize(("pos", "shift", "pair"), [(0, 1, 0), (12, 5, 4), (63, 64, 63), (9, -4, 2)])
def test_a_step_is_a_fixed_rotation(pos: int, shift: int, pair: int) -> None:
    step = step_as_rotation(length=64, d_model=128, pos=pos, shift=shift, pair=pair)
    np.testing.assert_allclose(step.turned, step.after, atol=1e-6)
    np.testing.assert_allclose(step.rotation @ step.rotation.T, np.eye(2), atol=1e-12)
    assert step.angle == pytest.approx(shift * step.frequency)
    assert step.difference < 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pos": 64}, "pos=64 must be from 0 to 63"),
        ({"pair": 64}, "pair=64 must be from 0 to 63"),
        ({"shift": -13}, "pos=12 and shift=-13 end before position 0"),
    ],
)
def test_places_outside_are_named(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=exactly(message)):
        step_as_rotation(**({"length": 64, "d_model": 128, "pos": 12, "shift": 5, "pair": 4} | changes))


def test_odd_widths_and_empty_lengths_are_named() -> None:
    with pytest.raises(ValueError, match="d_model=5 must be even"):
        position_matrix(length=4, d_model=5)
    with pytest.raises(ValueError, match=exactly("length=0 must be at least 1")):
        position_matrix(length=0, d_model=4)
    with pytest.raises(ValueError, match="length=2 must be at least shift"):
        compare_exponents(length=2, d_model=4)


def test_only_the_papers_exponent_is_a_rotation() -> None:
    found = compare_exponents(length=64, d_model=128)
    paper, doubled = found.rotation_error
    assert paper < 1e-6 < 0.1 < doubled
    assert found.deviation[0] < 1e-5 < 1 < found.deviation[1]
    assert found.ratio[0] == pytest.approx(1.0)
    assert found.ratio[1] == pytest.approx(10_000 ** (2 / 128))


def test_the_measures_of_the_slip_are_counted_from_the_tables() -> None:
    found = compare_exponents(length=20, d_model=32)
    for variant, table in enumerate(found.tables):
        spread = table.max(0) - table.min(0)
        assert found.still[variant] == (spread < STILL).sum()
        assert found.fast[variant] == (found.wavelengths[variant] <= 20).sum()
        rows = table.astype(float)
        farthest = rows[0] @ rows[-1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[-1])
        assert found.farthest[variant] == pytest.approx(farthest)
    assert found.longest[1] > found.longest[0]
    assert found.still[1] > found.still[0]


def test_the_best_fixed_matrix_is_found_by_least_squares() -> None:
    table = np.random.default_rng(1).normal(size=(12, 2))
    fitted, *_ = np.linalg.lstsq(table[:-3], table[3:], rcond=None)
    expected = np.sqrt(((table[:-3] @ fitted - table[3:]) ** 2).mean())
    assert worst_fit(table, 3) == pytest.approx(expected)
