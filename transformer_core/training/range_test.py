"""What a learning-rate range test shows: where the loss falls steepest, where it is lowest, and where it diverges.

Smith 2017, section 3.3. The loss of a batch jumps about, so that all is read off means over neighbouring steps.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

PARTS = 15  # a mean is over this part of the steps, in all of which the rate rises by several powers of ten
FEWEST_STEPS = 45
CLEAR = 4.0  # standard errors; the lowest of many means lies below the first by chance alone
Fall = Literal["short", "flat", "falls"]
End = Literal["no_number", "diverged", "rises", "still"]


@dataclass(frozen=True, eq=False)
class RangeTest:
    """What a range test shows.

    Shapes:
        smoothed: (step,), nan within half a window of either end

    Args:
        window: steps of a mean.
        smoothed: the mean loss around each step, in nats.
        start: mean loss of the first window, in nats.
        clear: by how much two means must differ to count, in nats: CLEAR standard errors, from the first window.
        fall: "falls": a mean lies below the first by more than `clear`; "flat": none does; "short": too few steps.
        steepest, slope: the rate at which the loss falls fastest, and by how much, in nats for ten times the rate.
        lowest, lowest_loss: the rate of the lowest mean, and that.
        end: what comes after the lowest mean: "diverged": one above the first; "no_number": the run ended before its
            last step; "rises": the last lies above the lowest by more than `clear`; "still": none of these.
        diverged: the rate at which it diverged or the loss was no number any more; nan where neither came.
    """

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
    smoothed = np.full(rates.shape, np.nan)
    nothing = {"start": float(losses[0]), "clear": np.nan, "steepest": np.nan, "slope": np.nan}
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
    place = np.arange(-half, half + 1)
    width = float(np.log10(rates[-1] / rates[0])) / (rates.size - 1)
    slopes = np.full(rates.shape, np.nan)
    slopes[whole] = np.correlate(losses, place / (place**2).sum(), "valid") / width
    start = float(smoothed[half])
    clear = float(CLEAR * losses[:window].std(ddof=1) * np.sqrt(2 / window))
    lowest = int(np.nanargmin(smoothed))
    falls = start - smoothed[lowest] > clear
    steepest = half + int(np.argmin(slopes[half : max(lowest, half) + 1]))
    end, diverged = _end(rates, smoothed, lowest, above=start + clear, clear=clear, ended_early=ended_early)
    return RangeTest(
        window=window,
        smoothed=smoothed,
        start=start,
        clear=clear,
        fall="falls" if falls else "flat",
        steepest=float(rates[steepest]) if falls else np.nan,
        slope=float(slopes[steepest]) if falls else np.nan,
        lowest=float(rates[lowest]),
        lowest_loss=float(smoothed[lowest]),
        end=end,
        diverged=diverged,
    )


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
