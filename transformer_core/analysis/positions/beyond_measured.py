"""Schemes of positions beyond the trained length, on real stories: measured once by a command, read here.

The command is transformer_core/recipes/beyond.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from transformer_core.analysis.positions.beyond import SCHEMES, Beyond, Course
from transformer_core.analysis.source import ROOT
from transformer_core.config import require_choice
from transformer_core.stored import number, numbers, read_stored, rows, text, whole_number, write_stored

FILE = ROOT / "assets" / "measured" / "beyond_trained_length.json"
LARGEST, MOST_RUNS, MOST_BINS, LONGEST_TEXT = 256 << 10, 400, 40, 500
MOST_NATS, MOST = 1_000.0, 10**9


@dataclass(frozen=True)
class BeyondRun:
    """One run: what it was, and nats a character as in beyond.Reach."""

    scheme: str
    width: int
    stories: int
    characters: int
    seed: int
    within: float
    forgetful: float
    learned: float
    nats: tuple[float, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any], bins: int) -> "BeyondRun":
        """Check a stored row.

        Raises:
            ValueError: a value is missing or impossible.
        """
        require_choice("scheme", row.get("scheme"), SCHEMES)
        return cls(
            scheme=row["scheme"],
            width=whole_number(row, "width", 1, MOST),
            stories=whole_number(row, "stories", 1, MOST),
            characters=whole_number(row, "characters", 1, MOST),
            seed=whole_number(row, "seed", 0, MOST),
            within=number(row, "within", 0, MOST_NATS),
            forgetful=number(row, "forgetful", 0, MOST_NATS),
            learned=number(row, "learned", 0, MOST_NATS),
            nats=numbers(row, "nats", bins, 0, MOST_NATS),
        )

    def as_row(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self) | {"nats": list(self.nats)}


@dataclass(frozen=True, eq=False)
class BeyondMeasured:
    """All runs of the command, and how they were made.

    Args:
        runs: as they were measured.
        ends: the last place of each bin.
        steps: of each training; `batch` is how many characters a step reads.
        command: that measured them; `files`: what it learned and asked.
    """

    runs: tuple[BeyondRun, ...]
    ends: tuple[int, ...]
    steps: int
    batch: int
    command: str
    files: tuple[str, ...]

    def chosen(self, *, width: int, stories: int) -> Beyond:
        """Return the runs of one width and one size of data as a comparison.

        Raises:
            ValueError: there are none.
        """
        runs = [run for run in self.runs if (run.width, run.stories) == (width, stories)]
        if not runs:
            raise ValueError(f"width={width} and stories={stories} have no runs")
        return Beyond(
            schemes=tuple(run.scheme for run in runs),
            width=width,
            characters=runs[0].characters,
            steps=self.steps,
            seeds=np.array([run.seed for run in runs]),
            ends=np.array(self.ends),
            nats=np.array([run.nats for run in runs]),
            within=np.array([run.within for run in runs]),
            forgetful=np.array([run.forgetful for run in runs]),
            learned=np.array([run.learned for run in runs]),
        )


def write_beyond(path: Path, runs: Sequence[BeyondRun], course: Course, *, command: str, files: Sequence[str]) -> None:
    """Write what was measured as JSON, a run a line."""
    entries = {
        "command": command,
        "files": list(files),
        "steps": course.steps,
        "batch": course.characters,
        "ends": list(course.ends),
        "runs": [run.as_row() for run in runs],
    }
    write_stored(path, entries)


def beyond_measured() -> BeyondMeasured:
    """Read what was measured and is shipped in assets/measured; ValueError and OSError as read_beyond."""
    return read_beyond(FILE)


def read_beyond(path: Path) -> BeyondMeasured:
    """Read a file that write_beyond wrote.

    Raises:
        ValueError: the file is too large or holds impossible values.
        OSError: it cannot be read.
    """
    return read_stored(path, LARGEST, _checked)


def _checked(found: Mapping[str, Any]) -> BeyondMeasured:
    for name in ("ends", "files"):
        if not isinstance(found.get(name), list) or not 1 <= len(found[name]) <= MOST_BINS:
            raise ValueError(f"{name} must be a list of 1 to {MOST_BINS}")
    ends = numbers(found, "ends", len(found["ends"]), 1, MOST, whole_number)
    if any(after <= before for before, after in pairwise(ends)):
        raise ValueError(f"ends={ends!r:.120} must ascend")
    return BeyondMeasured(
        runs=tuple(BeyondRun.of(row, len(ends)) for row in rows(found, "runs", MOST_RUNS)),
        ends=ends,
        steps=whole_number(found, "steps", 1, MOST),
        batch=whole_number(found, "batch", 1, MOST),
        command=text(found, "command", LONGEST_TEXT),
        files=tuple(text({"files": file}, "files", LONGEST_TEXT) for file in found["files"]),
    )


def beyond_shipped(*, width: int) -> Beyond:
    """Return the shipped comparison of all schemes that learned windows of a width from the most stories.

    Raises:
        ValueError: there are no runs of this width, or as read_beyond.
    """
    found = beyond_measured()
    most = max(run.stories for run in found.runs)
    return found.chosen(width=width, stories=most)
