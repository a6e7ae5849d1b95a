"""How well models translate sentences of each length: measured once by a command, stored as a file, read here.

Sutskever et al. 2014, figure 3, and Bahdanau et al. 2015, figure 2, show the same curve. The command is
transformer_core/evaluation/by_length.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transformer_core.analysis.source import ROOT
from transformer_core.stored import number, numbers, read_stored, rows, text, whole_number, write_stored

FOLDER = ROOT / "assets" / "measured"
LARGEST, LONGEST_TEXT = 64 << 10, 2_000
BEST = 100  # BLEU
MOST_MODELS, MOST_BINS, MOST_WORDS, MOST_SENTENCES = 12, 40, 10_000, 10**9


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


def write_by_length(path: Path, found: ByLength) -> None:
    """Write what was measured as JSON, a model a line."""
    head = {name: getattr(found, name) for name in ("command", "sources", "references", "beam", "signature")}
    bins = [
        {"fewest": int(low), "most": int(high), "sentences": int(count)}
        for low, high, count in zip(found.fewest, found.most, found.sentences, strict=True)
    ]
    models = [
        {
            "name": name,
            "overall": round(float(found.overall[place]), 2),
            **{part: [round(float(value), 2) for value in getattr(found, part)[place]] for part in _PARTS},
        }
        for place, name in enumerate(found.models)
    ]
    write_stored(path, head | {"bins": bins, "models": models})


_PARTS = ("bleu", "low", "high")


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
    return read_stored(path, LARGEST, _checked)


def _checked(found: Mapping[str, Any]) -> ByLength:
    bins, models = rows(found, "bins", MOST_BINS), rows(found, "models", MOST_MODELS)
    fewest, most = ([whole_number(row, name, 1, MOST_WORDS) for row in bins] for name in ("fewest", "most"))
    if any(low > high for low, high in zip(fewest, most, strict=True)) or any(
        after <= high for high, after in zip(most, fewest[1:], strict=False)
    ):
        raise ValueError(f"bins={[*zip(fewest, most, strict=True)]!r:.120} must follow each other, the shortest first")
    scores = {part: np.array([numbers(row, part, len(bins), 0, BEST) for row in models]) for part in _PARTS}
    if bool(((scores["low"] > scores["bleu"]) | (scores["bleu"] > scores["high"])).any()):
        raise ValueError("bleu must be from low to high")
    return ByLength(
        models=tuple(text(row, "name", LONGEST_TEXT) for row in models),
        command=text(found, "command", LONGEST_TEXT),
        sources=text(found, "sources", LONGEST_TEXT),
        references=text(found, "references", LONGEST_TEXT),
        beam=whole_number(found, "beam", 1, 100),
        signature=text(found, "signature", LONGEST_TEXT),
        fewest=np.array(fewest),
        most=np.array(most),
        sentences=np.array([whole_number(row, "sentences", 1, MOST_SENTENCES) for row in bins]),
        overall=np.array([number(row, "overall", 0, BEST) for row in models]),
        **scores,
    )
