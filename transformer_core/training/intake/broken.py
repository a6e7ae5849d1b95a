"""Broken rows: what could not be read, counted by reason, the first of them shown with their lines.

Read next: decoding.py.
"""

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from transformer_core.training.intake.bounds import SHOWN_BROKEN
from transformer_core.training.intake.cleaning import shown

Reason = Literal[
    "too_few_cells",
    "too_many_cells",
    "open_quote",
    "empty_text",
    "empty_label",
    "long_label",
    "bad_json",
    "no_object",
    "undecodable",
]
WORDS: dict[Reason, str] = {
    "too_few_cells": "too few cells",
    "too_many_cells": "too many cells",
    "open_quote": "a quote that is not closed",
    "empty_text": "no text",
    "empty_label": "no label",
    "long_label": "a label that is too long to be one",
    "bad_json": "broken JSON",
    "no_object": "JSON that is no object",
    "undecodable": "characters that cannot be decoded",
}
LONGEST_SHOWN = 80


@dataclass(frozen=True)
class BrokenRow:
    """A row that was left out.

    Args:
        line: where it begins, from 1.
        reason: why, an entry of WORDS.
        beginning: of the row.
    """

    line: int
    reason: Reason
    beginning: str


@dataclass(eq=False)
class Broken:
    """All rows that were left out.

    Args:
        counts: how many, by reason.
        first: the first SHOWN_BROKEN of them, in the order of their lines.
    """

    counts: Counter[Reason] = field(default_factory=Counter)
    first: list[BrokenRow] = field(default_factory=list)

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, line: int, reason: Reason, row: str) -> None:
        """Count a row that was left out."""
        self.counts[reason] += 1
        if len(self.first) < SHOWN_BROKEN or line < self.first[-1].line:
            insort(self.first, BrokenRow(line, reason, shown(row, LONGEST_SHOWN)), key=attrgetter("line"))
            del self.first[SHOWN_BROKEN:]

    def words(self) -> str:
        """Return the counts in words: "3 rows with too few cells (the first in line 7), ..."."""
        lines = {row.reason: row.line for row in reversed(self.first)}
        return ", ".join(
            f"{count:,} with {WORDS[reason]}" + (f" (first in line {lines[reason]:,})" if reason in lines else "")
            for reason, count in self.counts.most_common()
        )
