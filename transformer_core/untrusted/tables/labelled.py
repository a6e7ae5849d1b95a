"""Labelled tables in strict mode: known columns and labels, texts as they are; the first broken row raises an error.

For files whose form is known: data to evaluate on, data of the recipes, and the rows that a run keeps. They are .csv
or .jsonl in UTF-8, plain or gzipped, and are read as a stream. The tolerant mode is table.py.
Formats: RFC 4180 (CSV), jsonlines.org, RFC 1952 (gzip).
"""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from transformer_core.examples import Example
from transformer_core.untrusted.tables.delimited import Dialect
from transformer_core.untrusted.tables.objects import values_of_lines
from transformer_core.untrusted.tables.opening import MOST_LABELS, IntakeError, utf8_lines

ROWS_FILE = "rows.jsonl"
NUMBERS = tuple(map(str, range(MOST_LABELS)))
EXACT = Dialect(",", skip_blanks=False)
Record = tuple[int, tuple[Any, ...]]
Fields = tuple[str, ...]


def read_labelled(path: str | os.PathLike[str], labels: Sequence[str]) -> Iterator[Example]:
    """Yield the examples of a file in their order; the file is read only as far as the caller iterates.

    Args:
        path: .csv with a header that has the columns text and label, or .jsonl with these keys in every object;
            either may end in .gz. Further columns and keys are ignored.
        labels: names of the classes, in order; a label in the file is one of them or its number, from 0.

    Raises:
        IntakeError: with the file, the line and what is wrong with it.
        OSError: the file cannot be opened.
    """
    path = Path(path)
    numbers = {str(number): number for number in range(len(labels))} | {name: n for n, name in enumerate(labels)}
    for line, (text, label) in read_records(path, ("text", "label")):
        yield Example(require_text(text, path, line), require_label(label, numbers, path, line))


def read_records(path: Path, fields: Fields) -> Iterator[Record]:
    """Yield the line and the named values of every record of a file that read_labelled can read.

    Raises:
        IntakeError: with the file, the line and what is wrong with it; or there are no records.
        OSError: the file cannot be opened.
    """
    reader = READERS.get(_suffix(path))
    if reader is None:
        raise IntakeError(f"{path.name} must end in one of {', '.join(READERS)}, or in one of these with .gz after it")
    empty = True
    for record in reader(utf8_lines(path), path, fields):
        empty = False
        yield record
    if empty:
        raise IntakeError(f"{path.name} holds no examples; it needs at least one with {' and '.join(fields)}")


def write_labelled(path: str | os.PathLike[str], examples: Sequence[Example]) -> None:
    """Write a .csv that read_labelled reads back to the same examples."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("text", "label"))
        writer.writerows((example.text, example.label) for example in examples)


def write_rows(examples: Iterable[Example]) -> bytes:
    """Return examples, such as a Table, as JSONL that read_rows reads back to equal ones.

    A run keeps what it learns from in this one form, so that it can be repeated.
    """
    encode = json.JSONEncoder(ensure_ascii=False).encode
    lines = (f'{{"text": {encode(example.text)}, "label": {example.label}}}\n' for example in examples)
    return "".join(lines).encode()


def read_rows(path: str | os.PathLike[str]) -> list[Example]:
    """Return the examples that write_rows wrote to a file whose name ends in .jsonl or .jsonl.gz.

    Raises:
        IntakeError: with the file, the line and what is wrong with it.
        OSError: the file cannot be opened.
    """
    return list(read_labelled(path, NUMBERS))


def is_table(path: Path) -> bool:
    """Return whether a file's name says that it holds records: .csv or .jsonl, or .gz of one."""
    return _suffix(path) in READERS


def require_text(value: Any, path: Path, line: int) -> str:
    """Return a value that must be a text that is not blank; IntakeError names the file and the line."""
    if not isinstance(value, str) or not value.strip():
        raise IntakeError(f"{path.name}, line {line}: text={value!r:.40} must be a string that is not blank")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise IntakeError(f"{path.name}, line {line}: the text holds half a character (a lone surrogate)") from None
    return value


def require_label(value: Any, numbers: dict[str, int], path: Path, line: int) -> int:
    """Return the number of a label, which a file may name or number; IntakeError names the file and the line."""
    number = numbers.get(str(value).strip()) if isinstance(value, int | str) and not isinstance(value, bool) else None
    if number is None:
        raise IntakeError(
            f"{path.name}, line {line}: label={value!r:.40} is unknown; it must be one of {', '.join(numbers)}"
        )
    return number


def _suffix(path: Path) -> str:
    return next((suffix.lower() for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "")


def _csv_records(lines: Iterator[str], path: Path, fields: Fields) -> Iterator[Record]:
    reader = EXACT.reader(lines, strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            row: list[str] = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise IntakeError(f"{path.name}, line {line}: the row that begins here is broken: {error}") from None
        if not row:
            continue
        if header is None:
            header = row
            _require_fields(header, path, line, fields)
        elif len(row) != len(header):
            raise IntakeError(f"{path.name}, line {line} has {len(row)} columns; the header has {len(header)}")
        else:
            yield line, tuple(row[header.index(name)] for name in fields)


def _jsonl_records(lines: Iterator[str], path: Path, fields: Fields) -> Iterator[Record]:
    for line, record, _ in values_of_lines(lines):
        if isinstance(record, Exception):
            raise IntakeError(f"{path.name}, line {line} is not JSON: {record}")
        if not isinstance(record, dict):
            raise IntakeError(f"{path.name}, line {line} must be a JSON object, not {type(record).__name__}")
        _require_fields(list(record), path, line, fields)
        yield line, tuple(record[name] for name in fields)


READERS = {".csv": _csv_records, ".jsonl": _jsonl_records}


def _require_fields(found_fields: list[str], path: Path, line: int, needed: Fields) -> None:
    for name in needed:
        if name not in found_fields:
            found = ", ".join(repr(field[:40]) for field in found_fields[:8]) or "nothing"
            raise IntakeError(f"{path.name}, line {line} has no {name!r}; it has {found}")
