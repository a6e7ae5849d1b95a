"""Table: the texts and labels of two columns of a file in any form, cleaned, with the labels numbered.

This is the tolerant mode: form, encoding, delimiter and labels are found out from the contents, texts are cleaned, and
rows that cannot be used are counted and left out. The strict mode is labelled.py.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, takewhile

from transformer_core.examples import Example
from transformer_core.untrusted.tables.cleaning import SURROGATES, TO_CLEAN, Broken, Reason, cleaned, shown
from transformer_core.untrusted.tables.delimited import MOST_ABOVE, SAMPLE, Batch, Delimited, open_delimited
from transformer_core.untrusted.tables.objects import (
    Objects,
    is_lines_of_objects,
    is_list_of_objects,
    open_objects,
)
from transformer_core.untrusted.tables.opening import (
    FEWEST_LABELS,
    LONGEST_LABEL,
    LONGEST_TEXT,
    MOST_LABELS,
    MOST_ROWS,
    IntakeError,
    Source,
    detect_encoding,
    name_of,
    open_bytes,
    open_text,
    require_encoding,
)

MOST_COUNTED = 1_000
SHOWN, LONGEST_SHOWN = 5, 24
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
COLUMN_NAME = re.compile(r"[^\W\d]\w*([ .-]\w+){0,2}")
DIGITS = re.compile(r"([0-9]+)")


def open_table(
    source: Source,
    *,
    name: str,
    encoding: str | None = None,
    delimiter: str | None = None,
    has_header: bool | None = None,
) -> Delimited | Objects:
    """Open a table; its form, and each argument that is None, is detected from its contents, never from its name.

    Args:
        source: bytes or a path, plain or gzipped.
        name: of the table in messages.
        encoding: an entry of ENCODINGS.
        delimiter: an entry of DELIMITERS; tables of JSON have none.
        has_header: whether the first row names the columns; tables of JSON have none.

    Raises:
        IntakeError: it is no table, or an argument is unknown.
        OSError: the file cannot be read.
    """
    raw = open_bytes(source, name)
    encoding = detect_encoding(raw, name) if encoding is None else require_encoding(encoding)
    with open_text(raw, encoding) as file:
        sample = file.read(SAMPLE)
    if is_list_of_objects(sample):
        return open_objects(raw, encoding, is_list=True, name=name)
    if is_lines_of_objects(sample):
        return open_objects(raw, encoding, is_list=False, name=name)
    return open_delimited(raw, encoding, name=name, delimiter=delimiter, has_header=has_header)


def batches_of(table: Delimited | Objects, columns: Sequence[str], broken: Broken, name: str) -> Iterator[Batch]:
    """Yield the batches of a table, up to MOST_ROWS rows, whole or broken.

    Raises:
        IntakeError: there are more.
    """
    count = 0
    for lines, cells in table.batches(columns, broken):
        count += len(lines)
        if count + len(broken) > MOST_ROWS:
            raise IntakeError(f"{name} has more than {MOST_ROWS:,} rows, the most that are read")
        yield lines, cells


def natural_order(labels: Iterable[str]) -> list[str]:
    """Return labels in order: numbers by their size, words by the alphabet, the numbers within them by size.

    "0", "1", ..., "10"; "1 star", "2 stars", ..., "10 stars".
    """
    labels = sorted(labels)
    if all(NUMBER.fullmatch(label) for label in labels):
        return sorted(labels, key=float)
    return sorted(labels, key=_chunks)


def _chunks(label: str) -> list[tuple[int, float, str]]:
    parts = DIGITS.split(label.casefold())
    return [(0, float(part), "") if part.isascii() and part.isdigit() else (1, 0.0, part) for part in parts if part]


class LabelNumbers:
    """Numbers for labels in order of appearance; labels that differ only in blanks have the same number.

    Args:
        column: the column's name, for messages.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._of: dict[str, int | Reason] = {}

    def of(self, labels: Sequence[str]) -> list[int | Reason]:
        """Return the number of each label, or the reason why it is none.

        Raises:
            IntakeError: over MOST_COUNTED different labels came.
        """
        for label in set(labels) - self._of.keys():
            self._of[label] = self._learned(label)
        return [self._of[label] for label in labels]

    def _learned(self, label: str) -> int | Reason:
        name = " ".join(cleaned(label)[0].split())
        if SURROGATES.search(name):
            return "undecodable"
        if not name:
            return "empty_label"
        if len(name) > LONGEST_LABEL:
            return "long_label"
        if name not in self._numbers:
            if len(self.names) == MOST_COUNTED:
                raise IntakeError(_wrong_number(self.column, f"more than {MOST_COUNTED:,}", self.names))
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


def require_classes(column: str, names: Sequence[str]) -> None:
    """Raise IntakeError where there are too few or too many labels to be classes."""
    if not FEWEST_LABELS <= len(names) <= MOST_LABELS:
        raise IntakeError(_wrong_number(column, f"{len(names):,}", names))


def _wrong_number(column: str, count: str, names: Sequence[str]) -> str:
    some = ", ".join(repr(shown(name, LONGEST_SHOWN)) for name in names[:SHOWN])
    more = ", ..." * (len(names) > SHOWN)
    return (
        f"label_column={shown(column, LONGEST_LABEL)!r} has {count} different label{'s' * (len(names) != 1)} "
        f"({some}{more}); {FEWEST_LABELS} to {MOST_LABELS} are needed"
    )


@dataclass(frozen=True, eq=False)
class Table:
    """Labelled texts in the order of the file; iterating over them yields Examples.

    Args:
        texts: not blank, at most LONGEST_TEXT characters, clean.
        labels: a class number for each, its place in label_names.
        label_names: of the 2 to 20 classes, in natural order.
        broken: rows that were left out.
        n_cut: texts that were cut at LONGEST_TEXT.
        n_dropped: control characters that were left out of texts.
    """

    texts: Sequence[str]
    labels: Sequence[int]
    label_names: tuple[str, ...]
    broken: Broken
    n_cut: int
    n_dropped: int

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[Example]:
        return map(Example, self.texts, self.labels)

    @property
    def examples(self) -> list[tuple[str, str]]:
        """Each text with the name of its label."""
        return [(text, self.label_names[label]) for text, label in zip(self.texts, self.labels, strict=True)]

    @property
    def counts(self) -> dict[str, int]:
        """How many texts each label has."""
        counts = Counter(self.labels)
        return {name: counts[number] for number, name in enumerate(self.label_names)}


def read_table(
    source: Source,
    text_column: str,
    label_column: str,
    *,
    name: str = "",
    encoding: str | None = None,
    delimiter: str | None = None,
    has_header: bool | None = None,
) -> Table:
    """Read the examples of a table.

    Args:
        source: bytes or a path: CSV, TSV, JSONL or a list of JSON objects, plain or gzipped.
        text_column, label_column: names among Preview.columns.
        name: of the source in messages; by default the path's name.
        encoding, delimiter, has_header: as in preview; None to detect them.

    Raises:
        IntakeError: no table, no such column, no row that can be used, or not 2 to 20 different labels.
        OSError: the file cannot be read.
    """
    name = name_of(source, name)
    table = open_table(source, name=name, encoding=encoding, delimiter=delimiter, has_header=has_header)
    if len(table.columns) == 1:
        raise IntakeError(f"{name} has one column, {table.columns[0]!r}; a text column and a label column are needed")
    for argument, column in (("text_column", text_column), ("label_column", label_column)):
        if column not in table.columns:
            columns = ", ".join(map(repr, table.columns[:8])) + ", ..." * (len(table.columns) > 8)
            raise IntakeError(f"{argument}={column!r:.100} must be one of the columns of {name}: {columns}")
    if text_column == label_column:
        raise IntakeError(f"text_column={text_column!r} must be another column than label_column")
    collected = _Collected(name, label_column)
    for lines, (texts, labels) in batches_of(table, (text_column, label_column), collected.broken, name):
        if texts:
            collected.add(lines, texts, labels)
    read = collected.table()
    if isinstance(table, Delimited):
        _require_no_preamble(read, name)
    return read


def _require_no_preamble(table: Table, name: str) -> None:
    """Raise IntakeError where the first rows read like settings and names of columns above the table.

    They are the only ones of their labels, the last of them holds two names, and each further label has several rows.
    """
    counts = Counter(table.labels)
    above = list(takewhile(lambda label: counts[label] == 1, table.labels[:MOST_ABOVE]))
    others = [count for count in counts.values() if count > 1]
    if not above or len(above) + len(others) < len(counts) or len(others) < FEWEST_LABELS:
        return
    text, label = table.examples[len(above) - 1]
    if COLUMN_NAME.fullmatch(text) and COLUMN_NAME.fullmatch(label):
        raise IntakeError(
            f"{name}: the row {shown(text, LONGEST_SHOWN)!r}, {shown(label, LONGEST_SHOWN)!r} near its top reads like "
            "the names of the columns, as no other row has this label; delete the lines above the table, or move the "
            "row further down where it is data"
        )


class _Collected:
    """The examples read so far; batches without a broken row take a fast path."""

    def __init__(self, name: str, label_column: str) -> None:
        self.broken = Broken()
        self._name = name
        self._texts: list[str] = []
        self._numbers = array("H")
        self._labels = LabelNumbers(label_column)
        self._n_cut = self._n_dropped = 0

    def add(self, lines: Sequence[int], texts: Sequence[str], labels: Sequence[str]) -> None:
        """Add a batch of rows that is not empty."""
        numbers = self._labels.of(labels)
        texts = list(map(str.strip, texts))
        if (
            not all(texts)
            or max(map(len, texts)) > LONGEST_TEXT
            or set(map(type, numbers)) != {int}
            or TO_CLEAN.search("\n".join(texts))
        ):
            mended = [self._mended(*row) for row in zip(lines, texts, numbers, strict=True)]
            texts, numbers = (list(compress(column, mended)) for column in (mended, numbers))
        self._texts += texts
        self._numbers.extend(numbers)

    def table(self) -> Table:
        """Return all examples, with the labels in natural order."""
        if not self._texts:
            why = f": {self.broken.words()}" if self.broken else ""
            raise IntakeError(f"{self._name} has no row with a text and a label that can be used{why}")
        names = [self._labels.names[number] for number in set(self._numbers)]
        require_classes(self._labels.column, names := natural_order(names))
        new = {self._labels.names.index(name): number for number, name in enumerate(names)}
        labels = bytes(map(new.__getitem__, self._numbers))
        return Table(self._texts, labels, tuple(names), self.broken, self._n_cut, self._n_dropped)

    def _mended(self, line: int, text: str, number: int | Reason) -> str:
        """Return a text cleaned and cut, or nothing where the row is broken."""
        text, n_dropped = cleaned(text) if TO_CLEAN.search(text) else (text, 0)
        problem: Reason | None = "undecodable" if SURROGATES.search(text) else None if text else "empty_text"
        if problem is None and isinstance(number, str):
            problem = number
        if problem is not None:
            self.broken.add(line, problem, text)
            return ""
        self._n_dropped += n_dropped
        self._n_cut += len(text) > LONGEST_TEXT
        return text[:LONGEST_TEXT].strip()
