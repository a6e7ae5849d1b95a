"""Delimited tables (CSV, TSV): their dialect, found in a sample, and their rows in batches, column by column.

The delimiter is the one that gives most rows of a sample the same number of cells, unless a first line such as "sep=;"
names it, as for Excel. Quotes in a cell are doubled, or escaped by a backslash where only that lets them close. The
first row is a header unless one of its cells is a number, is longer than a name, or occurs in the same column again
further down. What stands above it (a title, notes, settings) is a preamble, which is no data: table_start.

A quote that is never closed would swallow the rows after it: where a row over several lines has the wrong number of
cells, only its first line is broken, and its other lines are read one by one.
Format: RFC 4180 (CSV).
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from operator import itemgetter
from typing import Any, ClassVar

from transformer_core.untrusted.tables.cleaning import LONGEST_SHOWN, Broken, shown
from transformer_core.untrusted.tables.opening import LONGEST_LABEL, MOST_COLUMNS, MOST_UNPACKED, IntakeError, open_text

DELIMITERS = ("\t", ";", "|", ",")
LONGEST_NAME = 64
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
TEXT_NAMES = ("text", "review", "review_text", "reviewtext", "sentence", "content", "comment", "document", "message")
TEXT_NAMES += ("body", "tweet", "title", "文本", "内容", "评论", "句子", "評論", "內容", "文字")
LABEL_NAMES = ("label", "labels", "sentiment", "class", "category", "target", "rating", "stars", "score", "polarity")
LABEL_NAMES += ("y", "标签", "类别", "情感", "標籤", "類別")
MOST_ABOVE = 20  # rows of a preamble
FEWEST_BELOW = 4  # rows below an empty line that are needed to take what is above it for a preamble
SEPARATOR_LINE = re.compile(r'"?sep=(\\t|.)"?[\t;|, ]*(\n|$)', re.IGNORECASE)
ESCAPED = re.compile(r'\\(["\\])')
FORMULA = re.compile(
    "'*[=+\\-@\t\r＝＋－＠]"
)  # to a spreadsheet, full-width signs to those of East Asia; marked or not

csv.field_size_limit(MOST_UNPACKED)
ROWS_AT_ONCE = 512
SAMPLE = 1 << 16
Row = list[str]
Batch = tuple[Sequence[int], list[Sequence[str]]]


@dataclass(frozen=True)
class Dialect:
    """How the lines of a table are split into cells.

    Args:
        delimiter: between cells, one of DELIMITERS.
        quoted: whether a cell in quotes may hold delimiters and line ends.
        escaped: whether a backslash stands before a quote in a cell, in place of another quote.
        skip_blanks: whether blanks after a delimiter are dropped.
    """

    delimiter: str
    quoted: bool = True
    escaped: bool = False
    skip_blanks: bool = True

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Return a csv.reader of lines; a strict one raises csv.Error where quotes are used wrongly."""
        quoting = csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE
        how: Any = {"delimiter": self.delimiter, "quoting": quoting, "skipinitialspace": self.skip_blanks}
        return csv.reader(map(_with_doubled_quotes, lines) if self.escaped else lines, strict=strict, **how)


def _with_doubled_quotes(line: str) -> str:
    return ESCAPED.sub(lambda found: '""' if found[1] == '"' else "\\", line)


def sniff_dialect(sample: str, *, is_whole: bool, delimiter: str | None = None) -> tuple[Dialect, list[Row]]:
    """Return the dialect that fits a sample best, and the sample's rows in it, empty lines among them.

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
    escapes = [(True, True)] if '\\"' in sample else []
    for quoted, escaped in ((True, False), *escapes, (False, False)):
        for candidate in DELIMITERS if delimiter is None else (delimiter,):
            dialect = Dialect(candidate, quoted, escaped)
            rows = _rows(dialect, sample, is_whole)
            score = _evenness(rows) - (0.01 if quoted and not _quotes_close(dialect, sample, is_whole) else 0)
            if score > best_score:
                best, best_rows, best_score = dialect, rows, score
    return best, best_rows


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first of these rows names the columns, by the rule in the module's docstring."""
    first = [cell.strip() for cell in rows[0]]
    if any(NUMBER.fullmatch(cell) or len(cell) > LONGEST_NAME for cell in first):
        return False
    return not any(
        cell and any(place < len(row) and row[place].strip() == cell for row in rows[1:])
        for place, cell in enumerate(first)
    )


def commonest_width(rows: Iterable[Sequence[str]]) -> int:
    """Return the number of cells that most of the rows with several cells have, 1 where no row has several."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return widths.most_common(1)[0][0] if widths else 1


def table_start(rows: Sequence[Sequence[str]]) -> int:
    """Return the place of a table's first row, below its preamble: the first row that has all cells.

    Or a later one that names a text and a label, or the header below an empty line.
    """
    width = commonest_width(rows)
    near = [place for place, row in enumerate(rows[: MOST_ABOVE + 1]) if len(row) == width > 1]
    whole = [place for place in near if sum(bool(cell.strip()) for cell in rows[place]) > 1]
    if not whole:
        return 0
    for place in whole:
        names = {cell.strip().casefold() for cell in rows[place]}
        if names & {*TEXT_NAMES} and names & {*LABEL_NAMES}:
            return place
    first, *later = whole
    for place in reversed(later):
        below = [row for row in rows[place:] if not _is_blank(row)]
        if _is_blank(rows[place - 1]) and len(below) > FEWEST_BELOW and is_header(below):
            return place
    above = first - 1  # may be a header of which one column has a name
    return above if above in near and not _is_blank(rows[above]) and not is_header(rows[first:]) else first


def column_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return a unique name for each column: "column 2" where there is none, "text (2)" for a second text."""
    names: dict[str, None] = {}
    for place, cell in enumerate(cells, 1):
        wanted = name = shown(cell, LONGEST_LABEL) or f"column {place}"
        again = 1
        while name in names:
            again += 1
            name = f"{wanted} ({again})"
        names[name] = None
    return tuple(names)


def inert(text: str) -> str:
    """Return a text with a mark where a spreadsheet would take it for a formula; a marked one gets another."""
    return f"'{text}" if FORMULA.match(text) else text


def unmarked(cell: str) -> str:
    """Return a cell without the mark of `inert`."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def without_quotes(row: list[str]) -> list[str]:
    """Return cells without the quotes around them, for a dialect in which quotes have no meaning."""
    return [cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell for cell in row]


def _rows(dialect: Dialect, sample: str, is_whole: bool) -> list[list[str]]:
    rows = list(dialect.reader(io.StringIO(sample)))
    if len(rows) > 1 and not is_whole:
        rows.pop()
    return rows if dialect.quoted else list(map(without_quotes, rows))


def _evenness(rows: Sequence[Sequence[str]]) -> float:
    """Return the share of the rows that have the usual number of cells, 0 where that is a single cell."""
    rows = [row for row in rows if not _is_blank(row)]
    width = commonest_width(rows)
    return sum(len(row) == width for row in rows) / len(rows) if width > 1 else 0.0


def _quotes_close(dialect: Dialect, sample: str, is_whole: bool) -> bool:
    """Return whether every opening quote has a closing one right before a delimiter or the end of a line."""
    reader = dialect.reader(io.StringIO(sample), strict=True)
    try:
        for _ in reader:
            pass
    except csv.Error as error:
        return not is_whole and "unexpected end of data" in str(error)
    return True


@dataclass(frozen=True, eq=False)
class Delimited:
    """A table with a delimiter between cells.

    Args:
        raw: its bytes.
        encoding: of them.
        dialect: how lines are split into cells.
        has_header: whether the first row names the columns.
        columns: their names.
        n_above: lines above the table.
        preamble: those of them that hold something, but for a line that names the delimiter.
    """

    form: ClassVar = "delimited"
    raw: bytes
    encoding: str
    dialect: Dialect
    has_header: bool
    columns: tuple[str, ...]
    n_above: int = 0
    preamble: tuple[str, ...] = ()

    @property
    def delimiter(self) -> str:
        """The character between cells."""
        return self.dialect.delimiter

    def batches(self, columns: Sequence[str], broken: Broken) -> Iterator[Batch]:
        """Yield the lines where rows begin and the cells of these columns; other rows are added to `broken`."""
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
                wanted = (map(itemgetter(place), cells) for place in places)
                yield (
                    lines[: len(good)],
                    [[unmarked(cell) if cell[:1] == "'" else cell for cell in column] for column in wanted],
                )

    def _records(self) -> Iterator[tuple[Sequence[int], list[Row]]]:
        """Yield rows with the line where each begins, and the line after them all."""
        with open_text(self.raw, self.encoding) as file:
            for _ in range(self.n_above):
                file.readline()
            reader = self.dialect.reader(file)
            first = self.n_above + 1
            while rows := list(islice(reader, ROWS_AT_ONCE)):
                after = self.n_above + reader.line_num + 1
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
    """Each line of a table read as one row, from a separate stream that only moves forward."""

    def __init__(self, table: Delimited) -> None:
        self._dialect = table.dialect
        self._lines = enumerate(open_text(table.raw, table.encoding), 1)

    def rows(self, start: int, after: int) -> Iterator[tuple[int, Row]]:
        """Yield the rows of lines `start` to `after` - 1, which lie behind those of all earlier calls."""
        for number, line in self._lines if start < after else ():
            if number >= start:
                is_plain = '"' not in line
                yield number, line.split(self._dialect.delimiter) if is_plain else next(self._dialect.reader([line]))
            if number + 1 >= after:
                return


def open_delimited(
    raw: bytes, encoding: str, *, name: str, delimiter: str | None = None, has_header: bool | None = None
) -> Delimited:
    """Detect how a table is written.

    Args:
        raw: its bytes.
        encoding: of them.
        name: of the table in messages.
        delimiter: None to detect it.
        has_header: None to detect it.

    Raises:
        IntakeError: it has too many columns, or the delimiter is unknown.
    """
    with open_text(raw, encoding) as file:
        sample = file.read(SAMPLE)
        is_whole = not file.read(1)
    named = SEPARATOR_LINE.match(sample)
    if named:
        sample = sample[named.end() :]
        delimiter = delimiter or _named_delimiter(named[1], name)
    dialect, rows = sniff_dialect(sample, is_whole=is_whole, delimiter=delimiter)
    start = table_start(rows)
    reader = dialect.reader(io.StringIO(sample))
    above = [dialect.delimiter.join(row) for row in islice(reader, start) if not _is_blank(row)]
    n_above = reader.line_num + bool(named)
    rows = [row for row in rows[start:] if not _is_blank(row)]
    if not rows:
        raise IntakeError(f"{name} holds nothing but blanks; it needs rows with a text and a label")
    if has_header is None:
        has_header = is_header(rows)
    cells = rows[0] if has_header else [""] * commonest_width(rows)
    if len(cells) > MOST_COLUMNS:
        raise IntakeError(f"{name} has {len(cells):,} columns; at most {MOST_COLUMNS} are read")
    columns = column_names(list(map(unmarked, cells)))
    preamble = tuple(shown(line, LONGEST_SHOWN) for line in above)
    return Delimited(raw, encoding, dialect, has_header, columns, n_above, preamble)


def _named_delimiter(asked: str, name: str) -> str:
    """Return the delimiter that the first line names; IntakeError where it is none of DELIMITERS."""
    asked = "\t" if asked == "\\t" else asked
    if asked not in DELIMITERS:
        raise IntakeError(f"{name}, line 1: sep={asked!r} must be one of {', '.join(map(repr, DELIMITERS))}")
    return asked


def _is_blank(row: Sequence[str]) -> bool:
    return not any(map(str.strip, row))


def _starts(rows: Sequence[Row], first: int, after: int) -> list[int]:
    """Return the line where each row begins, from the line ends within its cells, and the line after all of them."""
    spans = (1 + sum(cell.count("\n") for cell in row) for row in rows[:-1])
    return [*accumulate(spans, initial=first), after]
