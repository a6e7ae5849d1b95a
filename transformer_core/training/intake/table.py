"""Table: the texts and labels of two columns, ready to be learned from, and what was left out on the way.

Read next: rows.py.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

from transformer_core.training.data import Example
from transformer_core.training.intake.bounds import LONGEST_TEXT, IntakeError
from transformer_core.training.intake.broken import Broken, Reason
from transformer_core.training.intake.cleaning import SURROGATES, TO_CLEAN, cleaned
from transformer_core.training.intake.labels import LabelNumbers, natural_order, require_classes
from transformer_core.training.intake.opening import Source, name_of
from transformer_core.training.intake.reading import batches_of, open_table


@dataclass(frozen=True, eq=False)
class Table:
    """Labelled texts, in the order of the file; iterating gives an Example each.

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
        name: what to call the source in messages; by default a path's own name.
        encoding, delimiter, has_header: as preview takes them; None to find out.

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
    return collected.table()


class _Collected:
    """What has been read so far; batches without a fault go a fast way."""

    def __init__(self, name: str, label_column: str) -> None:
        self.broken = Broken()
        self._name = name
        self._texts: list[str] = []
        self._numbers = array("H")
        self._labels = LabelNumbers(label_column)
        self._n_cut = self._n_dropped = 0

    def add(self, lines: Sequence[int], texts: Sequence[str], labels: Sequence[str]) -> None:
        """Take in a batch of rows that is not empty."""
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
        """Return all of it, with the labels in natural order."""
        if not self._texts:
            why = f": {self.broken.words()}" if self.broken else ""
            raise IntakeError(f"{self._name} has no row with a text and a label that can be used{why}")
        names = [self._labels.names[number] for number in set(self._numbers)]
        require_classes(self._labels.column, names := natural_order(names))
        new = {self._labels.names.index(name): number for number, name in enumerate(names)}
        labels = bytes(map(new.__getitem__, self._numbers))
        return Table(self._texts, labels, tuple(names), self.broken, self._n_cut, self._n_dropped)

    def _mended(self, line: int, text: str, number: int | Reason) -> str:
        """Return a text as it shall be, or nothing where the row is broken."""
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
