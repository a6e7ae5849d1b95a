"""Preview: the columns and first rows of a table, from which the user chooses the columns to read."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_core.untrusted.tables.cleaning import Broken, shown
from transformer_core.untrusted.tables.delimited import LABEL_NAMES, TEXT_NAMES
from transformer_core.untrusted.tables.opening import LONGEST_LABEL, MOST_LABELS, Source, name_of
from transformer_core.untrusted.tables.table import batches_of, natural_order, open_table

ROWS_SHOWN, LONGEST_CELL = 8, 300


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: of it, different from all others.
        values: its different values that are not blank, in natural order; None where there are more than 20.
        mean_length: characters a cell, on average.
    """

    name: str
    values: tuple[str, ...] | None
    mean_length: float


@dataclass(frozen=True, eq=False)
class Preview:
    """The description of a table.

    Args:
        form: "delimited", "jsonl" or "json".
        encoding: an entry of ENCODINGS.
        delimiter: an entry of DELIMITERS; None for JSON.
        has_header: whether the first row names the columns; None for JSON.
        preamble: the beginnings of what was left out above the table: a title, notes, settings.
        columns: in their order; without a header they are called "column 1", "column 2", ...
        rows: the first few, a cell for each column, cut to LONGEST_CELL.
        n_rows: rows with the right number of cells.
        broken: the other rows.
        text_column, label_column: guesses by name and contents; None where no column will do.
    """

    form: str
    encoding: str
    delimiter: str | None
    has_header: bool | None
    preamble: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    n_rows: int
    broken: Broken
    text_column: str | None
    label_column: str | None


def preview(
    source: Source,
    *,
    name: str = "",
    encoding: str | None = None,
    delimiter: str | None = None,
    has_header: bool | None = None,
) -> Preview:
    """Read a whole table and describe it.

    Args:
        source: bytes or a path: CSV, TSV, JSONL or a list of JSON objects, plain or gzipped.
        name: of the source in messages; by default the path's name.
        encoding, delimiter, has_header: correct what was detected wrongly; None to detect it.

    Raises:
        IntakeError: it is no table.
        OSError: the file cannot be read.
    """
    name = name_of(source, name)
    table = open_table(source, name=name, encoding=encoding, delimiter=delimiter, has_header=has_header)
    broken = Broken()
    rows: list[tuple[str, ...]] = []
    facts = [_Facts() for _ in table.columns]
    n_rows = 0
    for lines, cells in batches_of(table, table.columns, broken, name):
        n_rows += len(lines)
        for fact, column in zip(facts, cells, strict=True):
            fact.add(column)
        for row in zip(*(column[: ROWS_SHOWN - len(rows)] for column in cells), strict=True):
            rows.append(tuple(shown(cell, LONGEST_CELL) for cell in row))
    columns = tuple(fact.column(column, n_rows) for column, fact in zip(table.columns, facts, strict=True))
    text = _text_column(columns)
    return Preview(
        form=table.form,
        encoding=table.encoding,
        delimiter=table.delimiter,
        has_header=table.has_header,
        preamble=table.preamble,
        columns=columns,
        rows=tuple(rows),
        n_rows=n_rows,
        broken=broken,
        text_column=text,
        label_column=_label_column(columns, text),
    )


class _Facts:
    """Counts of one column."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._characters = 0

    def add(self, cells: Sequence[str]) -> None:
        self._characters += sum(map(len, cells))
        if len(self._values) <= MOST_LABELS:
            self._values |= {shown(cell, LONGEST_LABEL) for cell in set(cells)} - {""}

    def column(self, name: str, n_rows: int) -> Column:
        values = tuple(natural_order(self._values)) if len(self._values) <= MOST_LABELS else None
        return Column(name, values, self._characters / max(n_rows, 1))


def _text_column(columns: Sequence[Column]) -> str | None:
    """Return the column of the best known name, else the one with the longest cells."""
    named = _named(columns, TEXT_NAMES)
    longest = max(columns, key=lambda column: column.mean_length)
    return (named or longest).name if longest.mean_length else None


def _label_column(columns: Sequence[Column], text: str | None) -> str | None:
    """Return the column of the best known name that holds classes, else the one with the fewest classes."""
    classes = [column for column in columns if column.name != text and len(column.values or ()) > 1]
    named = _named(classes, LABEL_NAMES)
    fewest = min(classes, key=lambda column: len(column.values or ()), default=None)
    best = named or fewest
    return best.name if best else None


def _named(columns: Sequence[Column], names: Sequence[str]) -> Column | None:
    by_name = {column.name.casefold(): column for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)
