"""What a learning-rate range test shows: where the loss falls steepest, where it is lowest, and where it diverges.

Smith 2017, section 3.3. The loss of a batch jumps about, so that all is read off means over neighbouring steps.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

MOST_PLACES = 2_000  # a longer test is read off means over equally many steps each
PARTS = 15  # a mean is over this part of the steps, in all of which the rate rises by several powers of ten
FEWEST_STEPS = 45
CLEAR = 4.0  # standard errors; the lowest of many means lies below the first by chance alone
Fall = Literal["short", "flat", "slow", "falls"]
End = Literal["no_number", "diverged", "rises", "still"]


@dataclass(frozen=True, eq=False)
class RangeTest:
    """What a range test shows.

    Shapes:
        rates, losses, smoothed: (place,); smoothed is nan within half a window of either end

    Args:
        rates, losses: of each step, or of equally many steps, at most MOST_PLACES of them; losses in nats.
        window: steps of a mean.
        smoothed: the mean loss around each place, in nats.
        start: mean loss of the first window, in nats.
        clear: by how much two means must differ to count, in nats: CLEAR standard errors, from the first window.
        fall: "flat": no mean lies below the first by more than `clear`; "falls": one does, and in some window up to it
            the loss falls by more than CLEAR standard errors of its slope; "slow": in none; "short": too few steps.
        steepest, slope: the rate at which the loss falls fastest among such windows, and by how much, in nats for ten
            times the rate; nan where there is none.
        lowest, lowest_loss: the rate of the lowest mean, and that.
        end: what comes after the lowest mean: "diverged": one above the first; "no_number": the run ended before its
            last step; "rises": the last lies above the lowest by more than `clear`; "still": none of these.
        diverged: the rate at which it diverged or the loss was no number any more; nan where neither came.
    """

    rates: np.ndarray
    losses: np.ndarray
    window: int
    smoothed: np.ndarray
    start: float
    clear: float
    fall: Fall
    steepest: float
    slope: float
    lowest: float
    lowest_loss: float
    end: End
    diverged: float


def read_range_test(rates: np.ndarray, losses: np.ndarray, *, ended_early: bool) -> RangeTest:
    """Return what a range test shows.

    The slope at a step is that of the least-squares line through its window, against the power of ten of the rate.

    Shapes:
        rates, losses: (step,), the rates in equal ratios

    Args:
        rates: learning rate of each step.
        losses: of each step's batch, in nats, finite.
        ended_early: the loss of the step after these was no number.

    Raises:
        ValueError: rates and losses are not as many as each other, or there are none; or the rates do not rise.
    """
    if rates.shape != losses.shape or not rates.size:
        raise ValueError(f"rates has shape {rates.shape} and losses {losses.shape}; both need one and the same, not 0")
    if not (np.diff(rates, prepend=0.0) > 0).all():
        raise ValueError(f"rates from {rates[0]:g} to {rates[-1]:g} must be above 0 and rise at every step")
    stride = -(-rates.size // MOST_PLACES)
    if stride > 1:
        rates, losses = np.exp(_means(np.log(rates), stride)), _means(losses, stride)
    smoothed = np.full(rates.shape, np.nan)
    nothing: dict[str, Any] = {"rates": rates, "losses": losses}
    nothing |= {"start": float(losses[0]), "clear": np.nan, "steepest": np.nan, "slope": np.nan}
    if rates.size < FEWEST_STEPS:
        lowest = int(losses.argmin())
        nothing |= {"lowest": float(rates[lowest]), "lowest_loss": float(losses[lowest])}
        diverged = float(rates[-1]) if ended_early else np.nan
        end: End = "no_number" if ended_early else "still"
        return RangeTest(window=1, smoothed=losses, fall="short", end=end, diverged=diverged, **nothing)
    half = rates.size // PARTS // 2
    window = 2 * half + 1
    whole = slice(half, rates.size - half)
    smoothed[whole] = np.convolve(losses, np.ones(window) / window, "valid")
    slopes = _slopes(losses, half)
    start = float(smoothed[half])
    clear = float(CLEAR * losses[:window].std(ddof=1) * np.sqrt(2 / window))
    lowest = int(np.nanargmin(smoothed))
    fall: Fall = "flat"
    steepest = slope = np.nan
    if start - smoothed[lowest] > clear:
        place = int(np.argmin(slopes[half : lowest + 1]))
        fall = "falls" if slopes[half + place] < 0 else "slow"
        if fall == "falls":
            a_power = (rates.size - 1) / float(np.log10(rates[-1] / rates[0]))  # steps in which the rate rises tenfold
            steepest, slope = float(rates[half + place]), float(slopes[half + place]) * a_power
    end, diverged = _end(rates, smoothed, lowest, above=start + clear, clear=clear, ended_early=ended_early)
    return RangeTest(
        rates=rates,
        losses=losses,
        window=window * stride,
        smoothed=smoothed,
        start=start,
        clear=clear,
        fall=fall,
        steepest=steepest,
        slope=slope,
        lowest=float(rates[lowest]),
        lowest_loss=float(smoothed[lowest]),
        end=end,
        diverged=diverged,
    )


def _means(values: np.ndarray, stride: int) -> np.ndarray:
    """Return means of so many values each; the last of fewer are left out."""
    return values[: values.size // stride * stride].reshape(-1, stride).mean(axis=1)


def _slopes(losses: np.ndarray, half: int) -> np.ndarray:
    """Return the slope, in nats a step, of the line through the window around each step; 0 where it is not clear."""
    window, place = 2 * half + 1, np.arange(-half, half + 1)
    within = np.lib.stride_tricks.sliding_window_view(losses, window)  # (step, place)
    slope = within @ place / (place**2).sum()
    left = within.var(axis=1) * window - slope**2 * (place**2).sum()
    error = np.sqrt(np.maximum(left, 0) / (window - 2) / (place**2).sum())
    slopes = np.full(losses.shape, np.nan)
    slopes[half : losses.size - half] = np.where(-slope > CLEAR * error, slope, 0.0)
    return slopes


def _end(
    rates: np.ndarray, smoothed: np.ndarray, lowest: int, *, above: float, clear: float, ended_early: bool
) -> tuple[End, float]:
    """Return what comes after the lowest mean, and the rate at which it comes."""
    beyond = np.flatnonzero(smoothed[lowest:] > above)
    if beyond.size:
        return "diverged", float(rates[lowest + beyond[0]])
    if ended_early:
        return "no_number", float(rates[-1])
    last = smoothed[np.isfinite(smoothed)][-1]
    return ("rises" if last - smoothed[lowest] > clear else "still"), np.nan
