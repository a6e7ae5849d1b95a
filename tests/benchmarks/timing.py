"""Time several functions against one another in one run, so that a noisy machine disturbs all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(
    functions: Mapping[str, Callable[[], object]], *, seconds: float, calls: int = 3, least_rounds: int = 5
) -> dict[str, list[float]]:
    """Take turns: each round every function is called once unmeasured, then `calls` times measured.

    The result of a call is kept until the next one ends, as a caller who looks at it would.

    Returns:
        For each name, one median a round, in seconds, rounds in step.
    """
    medians: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(medians.values()))) < least_rounds:
        for name, function in functions.items():
            kept = function()
            times = []
            for _ in range(calls):
                start = time.perf_counter()
                kept = function()
                times.append(time.perf_counter() - start)
            del kept
            medians[name].append(statistics.median(times))
    return medians


def ratio(medians: Mapping[str, list[float]], ours: str, peer: str) -> float:
    """Return the median over rounds of ours / peer; both of a ratio were timed in the same round."""
    return statistics.median(a / b for a, b in zip(medians[ours], medians[peer], strict=True))
