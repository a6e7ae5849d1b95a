"""A real Ray cluster on this machine, in a process of its own: `python -m tests.helpers.ray_nodes CPUS ...`.

The first node is the head. It says the cluster's address in a line, and ends with its input.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from transformer_core.kept import PROJECT

MB = 1 << 20
QUICKLY = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 3}


@contextmanager
def cluster(*cpus: int) -> Iterator[str]:
    """Start a cluster of nodes with so many processors each, and yield its address.

    Of the project the nodes know the tests alone, so that they compute with what is sent to them.
    """
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "tests").symlink_to(PROJECT / "tests")
        known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != str(PROJECT)]
        path = os.pathsep.join(filter(None, (scratch, *known)))
        with subprocess.Popen(
            (sys.executable, "-m", "tests.helpers.ray_nodes", *map(str, cpus)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},
            cwd=PROJECT,
        ) as process:
            assert process.stdout is not None
            lines = (line for line in process.stdout if line.startswith(b"{"))
            yield json.loads(next(lines))["address"]
            process.communicate()


def main(cpus: Sequence[int]) -> None:
    """Be the cluster until the input ends."""
    from ray.cluster_utils import Cluster

    own = {"object_store_memory": 100 * MB}
    head = {"num_cpus": cpus[0], "include_dashboard": False, "_system_config": QUICKLY, **own}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    for count in cpus[1:]:
        nodes.add_node(num_cpus=count, **own)
    print(json.dumps({"address": nodes.address}), flush=True)
    sys.stdin.read()
    nodes.shutdown()


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]])
