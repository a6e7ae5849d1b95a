"""Runs as people start them: how long from Start to the end, how good they become, what recording and queueing cost.

Run: python -m tests.benchmarks.runs [--data DIR] [--only quick|recording|queued] [--at-once N]
DIR holds train25k.csv.gz of IMDB; without it that row is left out. With VITRINE_RUNNER=ray the runs compute on the
cluster at RAY_ADDRESS, and N says for how many it has room.
"""

import argparse
import dataclasses
import statistics
import sys
import tempfile
import time
from pathlib import Path

from transformer_core.training.runs.presets import IMDB, QUICK
from transformer_core.training.runs.queue import most_runs
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.store.folder import Data
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec
from transformer_core.untrusted.tables import ROWS_FILE, read_imdb, write_rows

ENDED = ("finished", "failed", "stopped", "interrupted")
MOST_SECONDS = 60.0
LEAST_QUICK, LEAST_IMDB, MOST_COST, MOST_WORDS = 0.97, 0.84, 1.10, 0.85
ROUNDS = 3
QUEUED, SINGLE, MOST_QUEUED = 12, 3, 1.15  # runs at once; single ones before and as many after; against their sum


def finished(
    folder: Path, spec: RunSpec, data: Data | None = None, *, estimated: RunSpec | None = None
) -> tuple[RunStore, float]:
    """Start a run as the page does, with a worker that stands by and has estimated it, and wait for its end.

    Args:
        estimated: another run that was estimated in its place, so that the worker has yet to make this one's data.

    Returns:
        The run, and the seconds from Start to its end, pictures included.
    """
    runner().estimate(estimated or spec, data)
    store = RunList(folder).create(spec, data=data)
    started = time.perf_counter()
    runner().start(store)
    while store.status().state not in ENDED:
        time.sleep(0.02)
    seconds = time.perf_counter() - started
    status = store.status()
    if status.state != "finished":
        raise RuntimeError(f"the run is {status.state}: {status.message}")
    return store, seconds


def tell(title: str, value: float, bound: float, *, least: bool = False) -> bool:
    """Print a row and return whether its goal is met."""
    met = value >= bound if least else value <= bound
    print(f"{title:64} {value:7.3f} {'>=' if least else '<='} {bound:5.2f} {'ok' if met else 'MISSED'}", flush=True)
    return met


def quick(folder: Path) -> list[bool]:
    """Run the quick preset in both languages."""
    met = []
    for language in ("en", "zh"):
        store, seconds = finished(folder, change(QUICK, language=language))
        measures, words = store.frames()[-1].measures, store.facts()["baselines"]["bag_of_words"]
        met += [
            tell(f"quick, {language}: seconds from Start, pictures included", seconds, MOST_SECONDS),
            tell(f"quick, {language}: held-out accuracy", measures["held_out_accuracy"], LEAST_QUICK, least=True),
            tell(f"quick, {language}: held-out accuracy of counting words", words, MOST_WORDS),
        ]
    return met


def recording(folder: Path) -> bool:
    """Compare training with all frames with training that keeps the first and the last one, in turns."""
    ratios = []
    for _ in range(ROUNDS):
        spent = [finished(folder, change(QUICK, frames=frames))[1] for frames in (QUICK.frames, 2)]
        ratios.append(spent[0] / spent[1])
    return tell(f"quick: {QUICK.frames} frames against 2, seconds from Start", statistics.median(ratios), MOST_COST)


def queued(folder: Path, at_once: int) -> bool:
    """Compare 12 runs that wait in the queue, the Sweep's first base, with the sum of their single times.

    Single runs are timed before and after them, since the machine may have other things to do. Of none has the worker
    made the data before.
    """
    spec = change(QUICK, epochs=1)

    def alone() -> list[float]:
        return [finished(folder, change(spec, seed=seed), estimated=spec)[1] for seed in range(1, SINGLE + 1)]

    single = alone()
    runs = RunList(folder)
    runner().estimate(spec)
    stores = [runs.create(change(spec, seed=seed)) for seed in range(QUEUED)]
    started = time.perf_counter()
    for store in stores:
        runner().start(store)
    while not all(store.status().state in ENDED for store in stores):
        time.sleep(0.05)
    seconds = time.perf_counter() - started
    if any(store.status().state != "finished" for store in stores):
        raise RuntimeError(f"runs ended as {[store.status().state for store in stores]}")
    single += alone()
    print(f"single runs: {' '.join(f'{one:.1f}' for one in single)} s; {QUEUED} queued: {seconds:.1f} s", flush=True)
    ratio = seconds * at_once / (QUEUED * statistics.mean(single))
    return tell(f"{QUEUED} quick runs queued, {at_once} at once, against single ones", ratio, MOST_QUEUED)


def imdb(folder: Path, data: Path) -> list[bool]:
    """Train on 8,000 reviews of IMDB."""
    examples, _ = read_imdb(data / "train25k.csv.gz", limit=IMDB.data.examples + IMDB.data.held_out, seed=0)
    spec = dataclasses.replace(IMDB, data=dataclasses.replace(IMDB.data, file=ROWS_FILE))
    store, seconds = finished(folder, spec, write_rows(examples))
    measures = store.frames()[-1].measures
    print(f"imdb: {seconds:.1f} seconds from Start, pictures and data included")
    return [
        tell("imdb, 8,000 reviews: seconds of training", store.status().seconds, MOST_SECONDS),
        tell("imdb, 8,000 reviews: held-out accuracy", measures["held_out_accuracy"], LEAST_IMDB, least=True),
    ]


def main() -> int:
    """Print one table; exit status 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", choices=("quick", "recording", "queued"))
    parser.add_argument("--at-once", type=int, default=most_runs(), help="runs that compute at once")
    asked = parser.parse_args()
    data, only = asked.data, asked.only
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        met = quick(folder) if only in (None, "quick") else []
        if data is not None and only is None:
            met += imdb(folder, data)
        met += [recording(folder)] if only in (None, "recording") else []
        met += [queued(folder, asked.at_once)] if only in (None, "queued") else []
        runner().close()
    print(f"{sum(met)} of {len(met)} goals met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
