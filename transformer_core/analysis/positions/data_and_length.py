"""Computed against learned positions at two sizes of data and two lengths, as the command measured them.

Vaswani et al. 2017, section 3.5 and table 3, row E; Devlin et al. 2019 learn theirs.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.positions.beyond_measured import beyond_measured

COMPARED = ("sinusoidal", "learned")


@dataclass(frozen=True, eq=False)
class DataAndLength:
    """Held-out nats a character at trained places, by scheme and case.

    Shapes:
        widths, stories, characters: (case,), characters a window and of the text
        nats, learned: (scheme, case), means over seeds, held-out and in the last tenth of training
        low, high: (scheme, case), of the seeds

    Args:
        schemes: "sinusoidal" and "learned".
        seeds: of each case.
    """

    schemes: tuple[str, ...]
    widths: np.ndarray
    stories: np.ndarray
    characters: np.ndarray
    nats: np.ndarray
    learned: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int

    @property
    def gaps(self) -> np.ndarray:
        """Nats that learned positions lose more than computed ones, (case,)."""
        return self.nats[1] - self.nats[0]


def data_and_length() -> DataAndLength:
    """Read what was measured and is shipped; ValueError and OSError as read_shipped."""
    found = beyond_measured()
    runs = [run for run in found.runs if run.scheme in COMPARED]
    cases = sorted({(run.width, run.stories, run.characters) for run in runs})
    grouped = [
        [[run for run in runs if (run.scheme, run.width, run.stories) == (scheme, *case[:2])] for case in cases]
        for scheme in COMPARED
    ]
    within = [[np.array([run.within for run in group]) for group in row] for row in grouped]
    widths, stories, characters = np.array(cases).T
    return DataAndLength(
        schemes=COMPARED,
        widths=widths,
        stories=stories,
        characters=characters,
        nats=np.array([[values.mean() for values in row] for row in within]),
        learned=np.array([[np.mean([run.learned for run in group]) for group in row] for row in grouped]),
        low=np.array([[values.min() for values in row] for row in within]),
        high=np.array([[values.max() for values in row] for row in within]),
        seeds=min(len(group) for row in grouped for group in row),
    )
