"""Runner: what computes runs: this machine's processes, or where VITRINE_RUNNER says "ray", a Ray cluster.

Whatever computes a run writes steps, frames and layouts into its folder as they come (store/database.py), where a
RunStore reads them; pages, exports and the film see the folder alone, and cannot tell where a run computes.
"""

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from transformer_core.training.runs.cluster.ray_runner import RayRunner
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.launcher import Launcher
from transformer_core.training.runs.store.folder import Data
from transformer_core.training.runs.store.records import Estimate, Presence, Request
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec

CHOICE = "VITRINE_RUNNER"


class Runner(Protocol):
    """What computes runs; any number of threads and servers may ask it at once, and runs outlive them.

    Raises:
        RunError: all methods but presence, live and close raise it where what they need cannot be reached.
    """

    def warm(self) -> None:
        """Get ready for a run or an estimate; return at once."""
        ...

    def require_room(self, root: Path) -> None:
        """Raise RunError where too many runs of a folder wait for another to be started."""
        ...

    def start(self, store: RunStore) -> None:
        """Start a run, or let it wait for its turn.

        Raises:
            RunError: it was started before, too many wait, or it cannot be started.
        """
        ...

    def ask(self, store: RunStore, request: Request) -> None:
        """Ask for a run to pause, to resume or to stop; it does so after its current step.

        A run that waits, or pauses without a worker, does so at once. What has stopped, failed or died is resumed from
        its last checkpoint, and goes on to the curve that it would have had.

        Raises:
            RunError: the run is in no state to do so, or cannot be reached.
        """
        ...

    def end(self, folder: Path) -> None:
        """Stop a run that may be unreadable; kill what does not stop within some seconds.

        Raises:
            RunError: it cannot be killed.
        """
        ...

    def estimate(self, spec: RunSpec, data: Data | None = None) -> Estimate:
        """Measure how long a run would take.

        Args:
            spec: the run's.
            data: content of the file that spec.data.file names.

        Raises:
            RunError: the run cannot be made, or too many wait for estimates.
        """
        ...

    def is_alive(self, folder: Path) -> bool:
        """Tell whether a run computes, starts, waits or pauses."""
        ...

    def live(self, folders: Iterable[Path]) -> set[Path]:
        """Return those of some runs' folders whose run is alive."""
        ...

    def presence(self, folder: Path) -> Presence:
        """Return how far a run is from computing."""
        ...

    def look(self, root: Path) -> dict[str, RunError]:
        """Go on with what waits in a folder of runs, now and from now on.

        Returns:
            The runs that cannot be started, with the reason; they wait no longer.
        """
        ...

    def close(self) -> None:
        """Let go of what is ready; runs go on."""
        ...


RUNNERS: dict[str, type[Runner]] = {"processes": Launcher, "ray": RayRunner}


def chosen() -> str:
    """Return the name of what computes, one of RUNNERS.

    Raises:
        ValueError: VITRINE_RUNNER names nothing that can.
    """
    name = os.environ.get(CHOICE) or "processes"
    if name not in RUNNERS:
        raise ValueError(f"{CHOICE}={name!r:.50} must be one of {', '.join(RUNNERS)}")
    return name


@lru_cache(maxsize=1)
def runner() -> Runner:
    """Return what computes this process's runs: the one place where that is chosen.

    Raises:
        ValueError: as chosen.
    """
    return RUNNERS[chosen()]()
