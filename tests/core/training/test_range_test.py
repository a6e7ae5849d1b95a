"""A range test's reading: on losses whose steepest fall, lowest place and divergence are known."""

import numpy as np
import pytest

from transformer_core.training.range_test import FEWEST_STEPS, read_range_test

RATES = np.logspace(-6, 1, 701)
POWER = np.log10(RATES)
NOISE = np.random.default_rng(0).normal(0, 0.05, RATES.size)


def fall(power, middle=-3.0):
    """Return losses that fall by 0.6 around a power of ten."""
    return 0.7 - 0.6 / (1 + np.exp(-4 * (power - middle)))


def test_the_steepest_fall_the_lowest_loss_and_the_divergence_are_found_in_noise():
    losses = fall(POWER) + np.where(POWER > -1, 2 * (POWER + 1), 0) + NOISE
    found = read_range_test(RATES, losses, ended_early=False)
    assert (found.fall, found.end) == ("falls", "diverged")
    assert np.log10(found.steepest) == pytest.approx(-3.0, abs=0.25)
    assert found.slope == pytest.approx(-0.6, rel=0.25)  # the curve's own is -0.6 nats there
    assert -1.8 < np.log10(found.lowest) < -0.9
    assert np.log10(found.diverged) == pytest.approx(-1 + 0.6 / 2, abs=0.1)
    place = int(np.abs(RATES - found.steepest).argmin())
    around = slice(place - found.window // 2, place + found.window // 2 + 1)
    assert found.smoothed[place] == pytest.approx(losses[around].mean())
    assert found.slope == pytest.approx(np.polyfit(POWER[around], losses[around], 1)[0])


@pytest.mark.parametrize(
    ("losses", "ended_early", "reading"),
    [
        (0.7 + NOISE, False, ("flat", "still")),
        (fall(POWER) + NOISE, False, ("falls", "still")),
        (0.7 - 0.02 * (POWER + 6) + NOISE, False, ("slow", "still")),
        (fall(POWER) + np.where(POWER > 0, 0.3, 0) + NOISE, False, ("falls", "rises")),
        (fall(POWER) + NOISE, True, ("falls", "no_number")),
        (0.7 + np.where(POWER > 0, 3.0, 0) + NOISE, False, ("flat", "diverged")),
    ],
)
def test_each_case_is_named(losses, ended_early, reading):
    found = read_range_test(RATES, losses, ended_early=ended_early)
    assert (found.fall, found.end) == reading
    assert np.isnan(found.steepest) == (reading[0] != "falls")
    assert np.isnan(found.diverged) == (reading[1] in ("rises", "still"))
    if ended_early:
        assert found.diverged == RATES[-1]


def test_a_long_test_is_read_off_means_and_shows_the_same():
    rates = np.logspace(-6, 1, 70_001)
    losses = fall(np.log10(rates)) + np.random.default_rng(1).normal(0, 0.05, rates.size)
    found = read_range_test(rates, losses, ended_early=False)
    assert found.losses.size == 1_944
    assert found.losses[7] == pytest.approx(losses[7 * 36 : 8 * 36].mean())
    assert found.window == 129 * 36
    assert (found.fall, found.end) == ("falls", "still")
    assert np.log10(found.steepest) == pytest.approx(-3.0, abs=0.1)


def test_too_few_steps_show_nothing_and_none_are_refused():
    few = slice(FEWEST_STEPS - 1)
    assert read_range_test(RATES[few], NOISE[few], ended_early=False).fall == "short"
    assert read_range_test(RATES[:1], NOISE[:1], ended_early=True).end == "no_number"
    with pytest.raises(ValueError, match=r"rates has shape \(0,\) and losses \(0,\)"):
        read_range_test(RATES[:0], NOISE[:0], ended_early=False)
