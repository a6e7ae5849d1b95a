"""Schemes of positions beyond the trained length, on real stories: measured once by a command, read here.

The command is transformer_core/recipes/beyond.py.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from transformer_core.analysis.positions.beyond import SCHEMES, Beyond
from transformer_core.measured_files import FOLDER, read_shipped
from transformer_core.untrusted.schema import one_of

FILE = FOLDER / "beyond_trained_length.json"
Count = Annotated[int, Meta(ge=1, le=10**9)]
Nats = Annotated[float, Meta(ge=0, le=1_000)]
Line = Annotated[str, Meta(max_length=500)]


@dataclass(frozen=True)
class BeyondRun:
    """One run: what it was, and nats a character as in beyond.Reach."""

    scheme: Annotated[str, one_of(*SCHEMES)]
    width: Count
    stories: Count
    characters: Count
    seed: Annotated[int, Meta(ge=0, le=10**9)]
    within: Nats
    forgetful: Nats
    learned: Nats
    nats: tuple[Nats, ...]


@dataclass(frozen=True, eq=False)
class BeyondMeasured:
    """All runs of the command, and how they were made.

    Args:
        command: that measured them; `files`: what it learned and asked.
        steps: of each training; `batch` is how many characters a step reads.
        ends: the last place of each bin.
        runs: as they were measured.
    """

    command: Line
    files: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=40, description="a list of 1 to 40 names")]
    steps: Count
    batch: Count
    ends: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=40, description="a list of 1 to 40 places")]
    runs: Annotated[tuple[BeyondRun, ...], Meta(min_length=1, max_length=400, description="a list of 1 to 400 objects")]

    def __post_init__(self) -> None:
        if any(after <= before for before, after in pairwise(self.ends)):
            raise ValueError(f"ends={self.ends!r:.120} must ascend")
        for run in self.runs:
            if len(run.nats) != len(self.ends):
                raise ValueError(f"nats={[*run.nats]!r:.80} must be a list of {len(self.ends)} numbers, one a bin")

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


def beyond_measured(path: Path = FILE) -> BeyondMeasured:
    """Read what was measured, by default what is shipped in assets/measured; ValueError and OSError as read_shipped."""
    return read_shipped(path, BeyondMeasured)


def beyond_shipped(*, width: int) -> Beyond:
    """Return the shipped comparison of all schemes that learned windows of a width from the most stories.

    Raises:
        ValueError: there are no runs of this width, or as beyond_measured.
    """
    found = beyond_measured()
    most = max(run.stories for run in found.runs)
    return found.chosen(width=width, stories=most)
