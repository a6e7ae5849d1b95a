"""Cleaning of texts (line ends, control characters), and the count of rows that had to be left out.

Source: the Unicode Standard, sections 3.9 (surrogates), 5.8 (line ends) and 23.1 (control characters); the
Encoding Standard (WHATWG), windows-1252.
"""

import re
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from transformer_core.untrusted.tables.opening import IntakeError

LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\u2028\u2029]")
WINDOWS_1252 = {
    code: character for code in range(0x80, 0xA0) if (character := bytes([code]).decode("cp1252", "ignore"))
}
DROPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")
SURROGATES = re.compile("[\ud800-\udfff]")
TO_CLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
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
SHOWN_BROKEN, LONGEST_SHOWN = 20, 80


def cleaned(text: str) -> tuple[str, int]:
    """Return a text with "\\n" at line ends and no control characters or outer blanks, and how many were dropped.

    Joiners and direction marks stay: emoji and right-to-left text need them. Lone surrogates stay too. U+0080 to
    U+009F are read as Windows-1252, as in HTML: nearly always they are its dashes and quotes.
    """
    text, n_dropped = DROPPED.subn("", LINE_ENDS.sub("\n", text).translate(WINDOWS_1252))
    return text.strip(), n_dropped


def shown(text: str, longest: int) -> str:
    """Return the beginning of a text on one line, with everything replaced that a screen cannot show."""
    beginning = SURROGATES.sub("\ufffd", cleaned(text[: 4 * longest])[0])
    beginning = " ".join(beginning.split())
    return beginning if len(beginning) <= longest else beginning[: longest - 1] + "…"


@dataclass(frozen=True)
class CleanText:
    """A cleaned text that a run can learn from.

    Args:
        text: the text.
        n_dropped: control characters and lone surrogates that were left out.
        n_cut: characters beyond the bound that were left out.
    """

    text: str
    n_dropped: int
    n_cut: int


def clean_text(text: str, least: int, most: int) -> CleanText:
    """Clean a pasted text and cut it at the bound.

    Args:
        text: as it was pasted.
        least: characters that are needed, without blanks at its ends.
        most: characters that are kept.

    Raises:
        IntakeError: the text is too short.
    """
    text, n_dropped = cleaned(text)
    text, n_halves = SURROGATES.subn("", text)
    if len(text) < least:
        raise IntakeError(f"the text has {len(text):,} characters; to learn from it, at least {least:,} are needed")
    return CleanText(text[:most], n_dropped + n_halves, max(len(text) - most, 0))


@dataclass(frozen=True)
class BrokenRow:
    """A row that was left out.

    Args:
        line: of its beginning, from 1.
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
