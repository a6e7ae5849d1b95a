"""Timing: how long a call takes on one thread of this machine, and with which power one measure grows with another."""

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from transformer_core.progress import counted

FEWEST = 7  # calls
processor_time = time.perf_counter if sys.platform == "win32" else time.thread_time  # Windows counts it in 1/64 s
_alone = threading.Lock()


@contextmanager
def alone_on_one_thread() -> Iterator[None]:
    """Compute on one thread of the processor, one caller of this process at a time."""
    with _alone:
        threads = torch.get_num_threads()
        if threads != 1:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if threads != 1:
                torch.set_num_threads(threads)


class Stopwatch:
    """Takes the least time of calls that the processor spends on this thread: other work adds little to that.

    On a GPU it takes the clock's time until the device has done the call's work: the processor only asks for it.

    Its `spread` is the greatest ratio so far of a call's median time by the clock to its least time on the processor:
    far above 1, other work has come between.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.spread = 1.0
        self.on_gpu = device is not None and device.type == "cuda"

    def _now(self) -> float:
        """Return the time, in seconds, at which all work so far is done."""
        if not self.on_gpu:
            return processor_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def seconds(self, call: Callable[[], object], *, repeats: int = 15, within: float = 0.1) -> float:
        """Return the least time of a call, after one call that is not counted.

        Args:
            call: what is timed.
            repeats: most calls that are counted; at least seven are.
            within: seconds after which no further call is begun.
        """
        call()
        taken: list[float] = []
        computed: list[float] = []
        while len(taken) < repeats and (len(taken) < FEWEST or sum(taken) < within):
            started, began = time.perf_counter(), self._now()
            call()
            computed.append(self._now() - began)
            taken.append(time.perf_counter() - started)
        least = min(computed)
        if least > 0:
            self.spread = max(self.spread, statistics.median(taken) / least)
        return least


def sweep(
    sizes: Iterable[int],
    calls_at: Callable[[int], Sequence[Callable[[], object]]],
    *,
    repeats: int | Sequence[int] = 15,
) -> tuple[np.ndarray, float]:
    """Time the same calls at one size after another, each size alone on one thread, and count the sizes as progress.

    Shapes:
        returns: (call, size), the least time of each in seconds; and the spread, as of Stopwatch

    Args:
        calls_at: from a size to the calls to time, always as many and in the same order.
        repeats: as of Stopwatch.seconds, for all calls or for each.
    """
    times, watch = [], Stopwatch()
    for size in counted(sizes):
        with alone_on_one_thread():
            calls = calls_at(size)
            most = [repeats] * len(calls) if isinstance(repeats, int) else repeats
            times.append([watch.seconds(call, repeats=count) for call, count in zip(calls, most, strict=True)])
    return np.array(times).T, watch.spread


def log_log_slope(x: np.ndarray, y: np.ndarray) -> float:
    """Return the slope of log y over log x by least squares; nan where fewer than two y are above 0, or all equal."""
    there = (y > 0) & np.isfinite(y)
    if there.sum() < 2 or np.ptp(y) <= 1e-9 * np.abs(y).max():
        return float("nan")
    return float(np.polyfit(np.log(x[there]), np.log(y[there]), 1)[0])
