"""Delimited tables (CSV, TSV): rows in batches, column by column, with the line in which each row begins.

A quote that is never closed would swallow the rows after it: where a row over several lines has the wrong number of
cells, only its first line is broken, and its other lines are read one by one.
Format: RFC 4180 (CSV). Read next: objects.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from operator import itemgetter
from typing import ClassVar

from transformer_core.training.intake.bounds import MOST_COLUMNS, IntakeError
from transformer_core.training.intake.broken import Broken
from transformer_core.training.intake.decoding import open_text
from transformer_core.training.intake.dialects import (
    Dialect,
    column_names,
    is_header,
    sniff_dialect,
    usual_width,
    without_quotes,
)

ROWS_AT_ONCE = 512
SAMPLE = 1 << 16
Row = list[str]
Batch = tuple[Sequence[int], list[Sequence[str]]]


@dataclass(frozen=True, eq=False)
class Delimited:
    """A table whose cells a delimiter parts.

    Args:
        raw: its bytes.
        encoding: of them.
        dialect: how lines fall into cells.
        has_header: whether the first row names the columns.
        columns: their names.
    """

    form: ClassVar = "delimited"
    raw: bytes
    encoding: str
    dialect: Dialect
    has_header: bool
    columns: tuple[str, ...]

    @property
    def delimiter(self) -> str:
        """What stands between cells."""
        return self.dialect.delimiter

    def batches(self, columns: Sequence[str], broken: Broken) -> Iterator[Batch]:
        """Yield the lines where rows begin and the cells of each of these columns; other rows go to `broken`."""
        places = [self.columns.index(column) for column in columns]
        header_is_due, alone = self.has_header, _SingleLines(self)
        for starts, rows in self._records():
            if header_is_due:
                place = next((place for place, row in enumerate(rows) if not _is_blank(row)), len(rows) - 1)
                header_is_due = _is_blank(rows[place])
                starts, rows = starts[place + 1 :], rows[place + 1 :]
            fits = set(map(len, rows)) == {len(self.columns)}
            for lines, good in [(starts, rows)] if fits else self._mended(starts, rows, alone, broken):
                cells = good if self.dialect.quoted else list(map(without_quotes, good))
                yield lines[: len(good)], [list(map(itemgetter(place), cells)) for place in places]

    def _records(self) -> Iterator[tuple[Sequence[int], list[Row]]]:
        """Yield rows with the line where each begins, and the line after them all."""
        with open_text(self.raw, self.encoding) as file:
            reader = self.dialect.reader(file)
            first = 1
            while rows := list(islice(reader, ROWS_AT_ONCE)):
                after = reader.line_num + 1
                yield range(first, after + 1) if after - first == len(rows) else _starts(rows, first, after), rows
                first = after

    def _mended(
        self, starts: Sequence[int], rows: Sequence[Row], alone: "_SingleLines", broken: Broken
    ) -> Iterator[tuple[Sequence[int], list[Row]]]:
        """Yield the rows that have the right number of cells, with their lines."""
        fitting = self._fitting(starts, rows, alone, broken)
        while batch := list(islice(fitting, ROWS_AT_ONCE)):
            yield [line for line, _ in batch], [row for _, row in batch]

    def _fitting(
        self, starts: Sequence[int], rows: Sequence[Row], alone: "_SingleLines", broken: Broken
    ) -> Iterator[tuple[int, Row]]:
        for (start, after), row in zip(pairwise(starts), rows, strict=True):
            if len(row) == len(self.columns):
                yield start, row
            elif row:
                for line, cells in chain([(start, row)], alone.rows(start + 1, after)):
                    if len(cells) == len(self.columns):
                        yield line, cells
                    elif len(cells) > 1 or not _is_blank(cells):
                        swallowed = line == start and after - start > 1
                        few_or_many = "too_few_cells" if len(cells) < len(self.columns) else "too_many_cells"
                        broken.add(line, "open_quote" if swallowed else few_or_many, self.delimiter.join(cells))


class _SingleLines:
    """The lines of a table read as a row each, from an own stream that only goes forward."""

    def __init__(self, table: Delimited) -> None:
        self._dialect = table.dialect
        self._lines = enumerate(open_text(table.raw, table.encoding), 1)

    def rows(self, start: int, after: int) -> Iterator[tuple[int, Row]]:
        """Yield the lines from `start` to before `after`, which no call has asked for yet."""
        for number, line in self._lines if start < after else ():
            if number >= start:
                is_plain = '"' not in line
                yield number, line.split(self._dialect.delimiter) if is_plain else next(self._dialect.reader([line]))
            if number + 1 >= after:
                return


def open_delimited(
    raw: bytes, encoding: str, *, name: str, delimiter: str | None = None, has_header: bool | None = None
) -> Delimited:
    """Find out how a table is written.

    Args:
        raw: its bytes.
        encoding: of them.
        name: what to call it in messages.
        delimiter: None to find out.
        has_header: None to find out.

    Raises:
        IntakeError: it has too many columns, or the delimiter is unknown.
    """
    with open_text(raw, encoding) as file:
        sample = file.read(SAMPLE)
        dialect, rows = sniff_dialect(sample, is_whole=not file.read(1), delimiter=delimiter)
    if not rows:
        raise IntakeError(f"{name} holds nothing but blanks; it needs rows with a text and a label")
    if has_header is None:
        has_header = is_header(rows)
    cells = rows[0] if has_header else [""] * usual_width(rows)
    if len(cells) > MOST_COLUMNS:
        raise IntakeError(f"{name} has {len(cells):,} columns; at most {MOST_COLUMNS} are read")
    return Delimited(raw, encoding, dialect, has_header, column_names(cells))


def _is_blank(row: Row) -> bool:
    return not any(map(str.strip, row))


def _starts(rows: Sequence[Row], first: int, after: int) -> list[int]:
    """Return the line where each row begins, from the line ends within its cells, and the line after all of them."""
    spans = (1 + sum(cell.count("\n") for cell in row) for row in rows[:-1])
    return [*accumulate(spans, initial=first), after]
