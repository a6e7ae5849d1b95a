"""How well models translate sentences of each length: measured once by a command, stored as a file, read here.

Sutskever et al. 2014, figure 3, and Bahdanau et al. 2015, figure 2, show the same curve. The command is
transformer_core/evaluation/by_length.py.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
from msgspec import Meta

from transformer_core.measured_files import FOLDER, read_shipped, write_shipped
from transformer_core.untrusted.schema import Text, check_printable, checked

LARGEST = 64 << 10
Words = Annotated[int, Meta(ge=1, le=10_000)]
Bleu = Annotated[float, Meta(ge=0, le=100)]


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

    def __post_init__(self) -> None:
        check_printable(self, "models", "command", "sources", "references", "signature")

    @property
    def lost(self) -> np.ndarray:
        """The BLEU of each model on the shortest sentences minus that on the longest, (model,)."""
        return self.bleu[:, 0] - self.bleu[:, -1]


def write_by_length(path: Path, found: ByLength) -> None:
    """Write what was measured as JSON, a model a line."""
    head = {name: getattr(found, name) for name in ("command", "sources", "references", "beam", "signature")}
    bins = [
        {"fewest": int(low), "most": int(high), "sentences": int(count)}
        for low, high, count in zip(found.fewest, found.most, found.sentences, strict=True)
    ]
    rows = [
        {
            "name": name,
            "overall": round(float(found.overall[place]), 2),
            **{part: [round(float(value), 2) for value in getattr(found, part)[place]] for part in _PARTS},
        }
        for place, name in enumerate(found.models)
    ]
    write_shipped(path, head, bins=bins, models=rows)


_PARTS = ("bleu", "low", "high")


class _Bin(TypedDict):
    fewest: Words
    most: Words
    sentences: Annotated[int, Meta(ge=1, le=10**9)]


class _Model(TypedDict):
    name: Text
    overall: Bleu
    bleu: list[Bleu]
    low: list[Bleu]
    high: list[Bleu]


class _File(TypedDict):
    command: Text
    sources: Text
    references: Text
    beam: Annotated[int, Meta(ge=1, le=100)]
    signature: Text
    bins: Annotated[list[_Bin], Meta(min_length=1, max_length=40, description="a list of 1 to 40 objects")]
    models: Annotated[list[_Model], Meta(min_length=1, max_length=12, description="a list of 1 to 12 objects")]


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
    """Read a file that write_by_length wrote.

    Raises:
        ValueError: the file is too large or holds impossible values.
        OSError: it cannot be read.
    """
    return read_shipped(path, _read, largest=LARGEST)


def _read(found: Any) -> ByLength:
    """Return what a file holds, after checking it against its schema, and its numbers against each other."""
    file = checked(found, _File)
    bins, models = file["bins"], file["models"]
    fewest, most = ([row[name] for row in bins] for name in ("fewest", "most"))
    if any(low > high for low, high in zip(fewest, most, strict=True)) or any(
        after <= high for high, after in zip(most, fewest[1:], strict=False)
    ):
        raise ValueError(f"bins={[*zip(fewest, most, strict=True)]!r:.120} must follow each other, the shortest first")
    for row, part in ((row, part) for row in models for part in _PARTS):
        if len(row[part]) != len(bins):
            raise ValueError(f"{part}={row[part]!r:.80} must be a list of {len(bins)} numbers, one a bin")
    numbers = {part: np.array([row[part] for row in models]) for part in _PARTS}
    if bool(((numbers["low"] > numbers["bleu"]) | (numbers["bleu"] > numbers["high"])).any()):
        raise ValueError("bleu must be from low to high")
    return ByLength(
        models=tuple(row["name"] for row in models),
        command=file["command"],
        sources=file["sources"],
        references=file["references"],
        beam=file["beam"],
        signature=file["signature"],
        fewest=np.array(fewest),
        most=np.array(most),
        sentences=np.array([row["sentences"] for row in bins]),
        overall=np.array([row["overall"] for row in models]),
        **numbers,
    )
