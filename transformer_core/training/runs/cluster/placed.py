"""The note in a run's folder of where a cluster computes it; it is there from the request for a place to the end."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from transformer_core.training.runs.store.folder import PLACED, write_whole
from transformer_core.training.runs.store.records import Shortage


@dataclass(frozen=True)
class Placed:
    """What is noted.

    Args:
        name: under which the cluster knows what computes the run.
        begun: whether it has a place, and the run's lock here is held, or will be as soon as a server is back.
        node: what its machine is called; pid: of its process there.
        shortage: what it waits for.
    """

    name: str
    begun: bool = False
    node: str = ""
    pid: str = ""
    shortage: Shortage | None = None

    def write(self, folder: Path) -> "Placed":
        """Write the note, and return it.

        Raises:
            OSError: it cannot be written.
        """
        write_whole(folder / PLACED, json.dumps(asdict(self)))
        return self

    def changed(self, folder: Path, **what: object) -> "Placed":
        """Return the note with other values, and write it where that makes a difference.

        Raises:
            OSError: it cannot be written.
        """
        new = replace(self, **what)  # type: ignore[arg-type]
        return self if new == self else new.write(folder)


def placed(folder: Path) -> Placed | None:
    """Return what is noted of a run; None where no cluster has it."""
    try:
        noted = json.loads((folder / PLACED).read_text(encoding="utf-8"))
        shortage = noted.pop("shortage")
        return Placed(**noted, shortage=None if shortage is None else Shortage(**shortage))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def forget(folder: Path) -> None:
    """Delete the note."""
    (folder / PLACED).unlink(missing_ok=True)
