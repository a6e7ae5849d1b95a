"""What a node of a test's cluster knows: the tiny task of tiny_runs, whose steps wait for their gate.

It is imported by the bridge and by what computes a run, and nowhere else.
"""

import os

from tests.helpers.tiny_runs import first_two, step_by_step, tiny_task
from transformer_core.training.runs.cluster import bridge, taker
from transformer_core.training.runs.cluster.remote_run import versions

step_by_step()


def gated_task(*given):  # type: ignore[no-untyped-def]
    """Return the tiny task; with its name this module is imported where it is made."""
    return tiny_task(*given)


def gated_layouts(*given):  # type: ignore[no-untyped-def]
    """Lay out the points of the tiny task."""
    return first_two(*given)


def main() -> None:
    """Be a bridge; of another version of torch where a test says so."""
    if torch_here := os.environ.get("VITRINE_TEST_TORCH"):
        bridge.versions = taker.versions = lambda: {**versions(), "torch": torch_here}
    bridge.main(gated_task, gated_layouts)
