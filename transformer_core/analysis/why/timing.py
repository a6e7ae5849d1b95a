"""Timing: how long a call takes on one thread of this machine, as the median of repeats within a bound.

Read next: sentence.py.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

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


def median_seconds(call: Callable[[], object], *, repeats: int = 11, within: float = 0.06) -> float:
    """Return the median time of a call, after one call that is not counted.

    Args:
        call: what is timed.
        repeats: most calls that are counted; at least five are.
        within: seconds after which no further call is begun.
    """
    call()
    taken: list[float] = []
    while len(taken) < repeats and (len(taken) < 5 or sum(taken) < within):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)
