"""Dialects: the delimiter of a table, whether quotes hold cells together, and whether its first row is a header.

The delimiter is the one that gives most rows of a sample the same number of cells. The first row is a header unless one
of its cells is a number, is longer than a name, or stands in the same column again further down.
Format: RFC 4180 (CSV). Read next: delimited.py.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_core.training.intake.bounds import LONGEST_LABEL, MOST_UNPACKED, IntakeError
from transformer_core.training.intake.cleaning import shown

DELIMITERS = ("\t", ";", "|", ",")
LONGEST_NAME = 64
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")

csv.field_size_limit(MOST_UNPACKED)


@dataclass(frozen=True)
class Dialect:
    """How the lines of a table fall into cells.

    Args:
        delimiter: between cells, one of DELIMITERS.
        quoted: whether a cell in quotes may hold delimiters and line ends.
    """

    delimiter: str
    quoted: bool = True

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Return a csv.reader of lines."""
        quoting = csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE
        return csv.reader(lines, delimiter=self.delimiter, quoting=quoting, skipinitialspace=True, strict=strict)


def sniff_dialect(sample: str, *, is_whole: bool, delimiter: str | None = None) -> tuple[Dialect, list[list[str]]]:
    """Return the dialect that fits a sample best, and the sample's rows in it.

    Args:
        sample: the beginning of a table.
        is_whole: whether it is all of the table; otherwise its last row may be cut.
        delimiter: the only one to try; None means all.

    Raises:
        IntakeError: the delimiter is none of DELIMITERS.
    """
    if delimiter is not None and delimiter not in DELIMITERS:
        raise IntakeError(f"delimiter={delimiter!r:.40} must be one of {', '.join(map(repr, DELIMITERS))}")
    best, best_rows, best_score = Dialect(delimiter or ","), [], -1.0
    for quoted in (True, False):
        for candidate in DELIMITERS if delimiter is None else (delimiter,):
            dialect = Dialect(candidate, quoted)
            rows = _rows(dialect, sample, is_whole)
            score = _evenness(rows) - (0.01 if quoted and not _quotes_close(dialect, sample, is_whole) else 0)
            if score > best_score:
                best, best_rows, best_score = dialect, rows, score
    return best, best_rows


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first of these rows names the columns; the module's first lines give the rule."""
    first = [cell.strip() for cell in rows[0]]
    if any(NUMBER.fullmatch(cell) or len(cell) > LONGEST_NAME for cell in first):
        return False
    return not any(
        cell and any(place < len(row) and row[place].strip() == cell for row in rows[1:])
        for place, cell in enumerate(first)
    )


def usual_width(rows: Iterable[Sequence[str]]) -> int:
    """Return the number of cells that most of the rows with several cells have, 1 where no row has several."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return widths.most_common(1)[0][0] if widths else 1


def column_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each column that no other has: "column 2" where there is none, "text (2)" for a second text."""
    names: dict[str, None] = {}
    for place, cell in enumerate(cells, 1):
        wanted = name = shown(cell, LONGEST_LABEL) or f"column {place}"
        again = 1
        while name in names:
            again += 1
            name = f"{wanted} ({again})"
        names[name] = None
    return tuple(names)


def without_quotes(row: list[str]) -> list[str]:
    """Return cells without the quotes around them, where quotes have no meaning but are there."""
    return [cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell for cell in row]


def _rows(dialect: Dialect, sample: str, is_whole: bool) -> list[list[str]]:
    rows = [row for row in dialect.reader(io.StringIO(sample)) if any(map(str.strip, row))]
    if len(rows) > 1 and not is_whole:
        rows.pop()
    return rows if dialect.quoted else list(map(without_quotes, rows))


def _evenness(rows: Sequence[Sequence[str]]) -> float:
    """Return the share of the rows that have the usual number of cells, 0 where that is a single cell."""
    width = usual_width(rows)
    return sum(len(row) == width for row in rows) / len(rows) if width > 1 else 0.0


def _quotes_close(dialect: Dialect, sample: str, is_whole: bool) -> bool:
    """Tell whether every cell that a quote opens is closed by one right before a delimiter or the end of a line."""
    reader = dialect.reader(io.StringIO(sample), strict=True)
    try:
        for _ in reader:
            pass
    except csv.Error as error:
        return not is_whole and "unexpected end of data" in str(error)
    return True
