"""Labelled text from CSV and JSON-lines files, plain or gzipped, read as a stream.

Formats: RFC 4180 (CSV), jsonlines.org, RFC 1952 (gzip); all in UTF-8. Read next: batching.py.
"""

import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST_LINE = 16 << 20
Record = tuple[int, tuple[Any, ...]]
Fields = tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """A text and the number of its class."""

    text: str
    label: int


def read_labelled(path: str | os.PathLike[str], labels: Sequence[str]) -> Iterator[Example]:
    """Yield the examples of a file in their order; the file is read as far as examples are asked for.

    Args:
        path: .csv with a header that has the columns text and label, or .jsonl with these keys in every object;
            either may end in .gz. Further columns and keys are ignored.
        labels: names of the classes, in order; a label in the file is one of them or its number, from 0.

    Raises:
        ValueError: with the file, the line and what is wrong with it.
        OSError: the file cannot be opened.
    """
    path = Path(path)
    by_name = {str(number): number for number in range(len(labels))} | {name: n for n, name in enumerate(labels)}
    for line, (text, label) in read_records(path, ("text", "label")):
        yield Example(require_text(text, path, line), require_label(label, by_name, path, line))


def read_records(path: Path, fields: Fields) -> Iterator[Record]:
    """Yield the line and the named values of every record of a file that read_labelled can read.

    Raises:
        ValueError: with the file, the line and what is wrong with it; or there are no records.
        OSError: the file cannot be opened.
    """
    reader = _reader_of(path)
    empty = True
    with _open(path) as file:
        for record in reader(_lines(file, path), path, fields):
            empty = False
            yield record
    if empty:
        raise ValueError(f"{path.name} holds no examples; it needs at least one with {' and '.join(fields)}")


def write_labelled(path: str | os.PathLike[str], examples: Sequence[Example]) -> None:
    """Write a .csv that read_labelled reads back to the same examples."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("text", "label"))
        writer.writerows((example.text, example.label) for example in examples)


def _suffix(path: Path) -> str:
    return next((suffix.lower() for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "")


def is_table(path: Path) -> bool:
    """Tell whether a file's name says that it holds records: .csv or .jsonl, or .gz of one."""
    return _suffix(path) in READERS


def _reader_of(path: Path) -> Callable[[Iterator[str], Path, Fields], Iterator[Record]]:
    reader = READERS.get(_suffix(path))
    if reader is None:
        raise ValueError(f"{path.name} must end in one of {', '.join(READERS)}, or in one of these with .gz after it")
    return reader


def _open(path: Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _lines(file: io.BufferedIOBase, path: Path) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        try:
            raw = file.readline(LONGEST_LINE + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path.name}, line {number}: the gzip data is broken: {error}") from None
        if not raw:
            return
        if len(raw) > LONGEST_LINE:
            raise ValueError(f"{path.name}, line {number} is longer than {LONGEST_LINE} bytes, the most that are read")
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path.name}, line {number}: byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8"
            ) from None


def _csv_records(lines: Iterator[str], path: Path, fields: Fields) -> Iterator[Record]:
    reader = csv.reader(lines, strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{path.name}, line {line}: the row that begins here is broken: {error}") from None
        if not row:
            continue
        if header is None:
            header = row
            _require_fields(header, path, line, fields)
        elif len(row) != len(header):
            raise ValueError(f"{path.name}, line {line} has {len(row)} columns; the header has {len(header)}")
        else:
            yield line, tuple(row[header.index(name)] for name in fields)


def _jsonl_records(lines: Iterator[str], path: Path, fields: Fields) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name}, line {number} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{path.name}, line {number} must be a JSON object, not {type(record).__name__}")
        _require_fields(list(record), path, number, fields)
        yield number, tuple(record[name] for name in fields)


READERS = {".csv": _csv_records, ".jsonl": _jsonl_records}


def _require_fields(found_fields: list[str], path: Path, line: int, needed: Fields) -> None:
    for name in needed:
        if name not in found_fields:
            found = ", ".join(repr(field[:40]) for field in found_fields[:8]) or "nothing"
            raise ValueError(f"{path.name}, line {line} has no {name!r}; it has {found}")


def require_text(value: Any, path: Path, line: int) -> str:
    """Return a value of a file that must be a text with something in it; ValueError names the file and the line."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{path.name}, line {line}: text={value!r:.40} must be a string that is not blank")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{path.name}, line {line}: the text holds half a character (a lone surrogate)") from None
    return value


def require_label(value: Any, by_name: dict[str, int], path: Path, line: int) -> int:
    """Return the number of a label, which a file may name or number; ValueError names the file and the line."""
    number = by_name.get(str(value).strip()) if isinstance(value, int | str) and not isinstance(value, bool) else None
    if number is None:
        raise ValueError(
            f"{path.name}, line {line}: label={value!r:.40} is unknown; it must be one of {', '.join(by_name)}"
        )
    return number
