"""How well models translate sentences of each length: measured once by a command, stored as a file, read here.

Sutskever et al. 2014, figure 3, and Bahdanau et al. 2015, figure 2, show the same curve. The command is
transformer_core/evaluation/by_length.py.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from transformer_core.measured_files import FOLDER, read_shipped
from transformer_core.untrusted.schema import Text, check_printable

Words = Annotated[int, Meta(ge=1, le=10_000)]
Bleu = Annotated[float, Meta(ge=0, le=100)]
PARTS = ("bleu", "low", "high")


@dataclass(frozen=True, eq=False)
class ByLength:
    """BLEU of several models on the same sentences, by the number of words of the source.

    Shapes:
        fewest, most, sentences: (bin,), the words of the shortest and the longest sentence of a bin, both included,
            and how many sentences it has
        bleu, low, high: (model, bin), in [0, 100]; low and high bound 95 % of resampled test sets
        overall: (model,), of all sentences

    Args:
        models: names of their bundles.
        command: what measured it.
        sources, references: names of the files.
        beam: width of the search.
        signature: sacrebleu's.
    """

    models: tuple[str, ...]
    command: str
    sources: str
    references: str
    beam: int
    signature: str
    fewest: np.ndarray
    most: np.ndarray
    sentences: np.ndarray
    bleu: np.ndarray
    low: np.ndarray
    high: np.ndarray
    overall: np.ndarray

    @property
    def lost(self) -> np.ndarray:
        """The BLEU of each model on the shortest sentences minus that on the longest, (model,)."""
        return self.bleu[:, 0] - self.bleu[:, -1]


@dataclass(frozen=True)
class Bin:
    """The sentences of some lengths: the fewest and the most words, both included, and how many sentences."""

    fewest: Words
    most: Words
    sentences: Annotated[int, Meta(ge=1, le=10**9)]


@dataclass(frozen=True)
class ModelBleu:
    """The BLEU of a model: of all sentences, and of each bin with its bounds, as of ByLength."""

    name: Text
    overall: Bleu
    bleu: tuple[Bleu, ...]
    low: tuple[Bleu, ...]
    high: tuple[Bleu, ...]


@dataclass(frozen=True, eq=False)
class LengthMeasured:
    """The same as ByLength, as it is stored: a record for each bin and each model."""

    command: Text
    sources: Text
    references: Text
    beam: Annotated[int, Meta(ge=1, le=100)]
    signature: Text
    bins: Annotated[tuple[Bin, ...], Meta(min_length=1, max_length=40, description="a list of 1 to 40 objects")]
    models: Annotated[tuple[ModelBleu, ...], Meta(min_length=1, max_length=12, description="a list of 1 to 12 objects")]

    def __post_init__(self) -> None:
        check_printable(self, "command", "sources", "references", "signature")
        ends = [(row.fewest, row.most) for row in self.bins]
        if any(low > high for low, high in ends) or any(after[0] <= before[1] for before, after in pairwise(ends)):
            raise ValueError(f"bins={ends!r:.120} must follow each other, the shortest first")
        for row in self.models:
            check_printable(row, "name")
            for part in PARTS:
                if len(getattr(row, part)) != len(ends):
                    raise ValueError(
                        f"{part}={[*getattr(row, part)]!r:.80} must be a list of {len(ends)} numbers, one a bin"
                    )
            if any(not low <= bleu <= high for low, bleu, high in zip(row.low, row.bleu, row.high, strict=True)):
                raise ValueError("bleu must be from low to high")


def by_length(*, name: str) -> ByLength:
    """Read what was measured and is shipped in assets/measured.

    Args:
        name: of the file there, without .json.

    Raises:
        ValueError: there is no such file, or as read_by_length.
    """
    if not name.isidentifier() or not (FOLDER / f"{name}.json").is_file():
        raise ValueError(f"name={name!r:.80} must be that of a file in assets/measured")
    return read_by_length(FOLDER / f"{name}.json")


def read_by_length(path: Path) -> ByLength:
    """Read a file that evaluation/by_length.py wrote; ValueError and OSError as read_shipped."""
    found = read_shipped(path, LengthMeasured)
    models, bins = found.models, found.bins
    return ByLength(
        models=tuple(row.name for row in models),
        command=found.command,
        sources=found.sources,
        references=found.references,
        beam=found.beam,
        signature=found.signature,
        fewest=np.array([row.fewest for row in bins]),
        most=np.array([row.most for row in bins]),
        sentences=np.array([row.sentences for row in bins]),
        overall=np.array([row.overall for row in models]),
        **{part: np.array([getattr(row, part) for row in models]) for part in PARTS},
    )
