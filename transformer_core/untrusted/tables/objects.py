"""JSON tables: one object a line (JSONL), or one list of objects; keys are the columns.

Formats: jsonlines.org, RFC 8259 (JSON).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, TextIO

from transformer_core.untrusted.tables.cleaning import TO_CLEAN, Broken
from transformer_core.untrusted.tables.delimited import ROWS_AT_ONCE, Batch
from transformer_core.untrusted.tables.opening import MOST_COLUMNS, IntakeError, open_text

LIST_BEGINS = re.compile(r"\s*\[\s*\{")
OBJECT_BEGINS = re.compile(r"\s*\{\s*[\"}]")
BETWEEN = re.compile(r"[\s,]*")
ROWS_FOR_COLUMNS = 1_000
LINES_TO_PROBE = 20
LONGEST_SHOWN = 400
Value = tuple[int, Any, str]
AS_JSON = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, eq=False)
class Objects:
    """A table of JSON objects.

    Args:
        raw: its bytes.
        encoding: of them.
        is_list: whether all objects stand in one list; otherwise one stands on each line.
        columns: the keys of the objects in the first ROWS_FOR_COLUMNS rows.
    """

    delimiter: ClassVar = None
    has_header: ClassVar = None
    preamble: ClassVar = ()
    raw: bytes
    encoding: str
    is_list: bool
    columns: tuple[str, ...]

    @property
    def form(self) -> str:
        """The form of the file."""
        return "json" if self.is_list else "jsonl"

    def batches(self, columns: Sequence[str], broken: Broken) -> Iterator[Batch]:
        """Yield the lines where objects begin and the values of each of these keys; other rows are added to `broken`.

        A missing value is an empty string; a number, a list or an object is its JSON.
        """
        with open_text(self.raw, self.encoding) as file:
            values = (values_of_list if self.is_list else values_of_lines)(file)
            while batch := list(islice(values, ROWS_AT_ONCE)):
                records = list(_objects(batch, broken))
                yield [line for line, _ in records], [_cells([r.get(column) for _, r in records]) for column in columns]


def is_list_of_objects(sample: str) -> bool:
    """Return whether a text begins like a list of JSON objects."""
    return LIST_BEGINS.match(sample) is not None


def is_lines_of_objects(sample: str) -> bool:
    """Return whether a text begins like JSONL."""
    lines = [line for line in sample.split("\n") if line.strip()][:LINES_TO_PROBE]
    objects = sum(OBJECT_BEGINS.match(line) is not None for line in lines)
    return OBJECT_BEGINS.match(sample) is not None or 0 < len(lines) <= 2 * objects


def open_objects(raw: bytes, encoding: str, *, is_list: bool, name: str) -> Objects:
    """Detect the columns of a JSON table; keys with characters that cannot be shown are left out.

    Raises:
        IntakeError: no object can be read.
    """
    broken = Broken()
    columns: dict[str, None] = {}
    with open_text(raw, encoding) as file:
        values = (values_of_list if is_list else values_of_lines)(file)
        for _, record in _objects(islice(values, ROWS_FOR_COLUMNS), broken):
            columns |= dict.fromkeys(key for key in record if key.strip() and not TO_CLEAN.search(key))
    if not columns:
        raise IntakeError(
            f"{name} looks like JSON, but none of its first rows is an object{': ' * bool(broken)}{broken.words()}; "
            "it needs one object a line, or one list of objects, with keys for the text and the label"
        )
    return Objects(raw, encoding, is_list, tuple(columns)[:MOST_COLUMNS])


def _objects(values: Iterable[Value], broken: Broken) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the values that are objects, with their lines; the others are added to `broken`."""
    for line, value, text in values:
        if isinstance(value, dict):
            yield line, value
        else:
            broken.add(line, "bad_json" if isinstance(value, Exception) else "no_object", text)


def values_of_lines(lines: Iterable[str]) -> Iterator[Value]:
    """Yield number, JSON value (the error where it is no JSON) and text of each line that is not blank."""
    decode = json.JSONDecoder().decode
    for number, line in enumerate(lines, 1):
        if text := line.strip():
            try:
                value = decode(text)
            except (ValueError, RecursionError) as error:
                value = error
            yield number, value, text


def values_of_list(file: TextIO) -> Iterator[Value]:
    """Yield the values of a list; a broken value ends it, since it is unknown where the next one begins."""
    text = file.read()
    decode = json.JSONDecoder().raw_decode
    line, before, place = 1, 0, text.index("[") + 1
    while True:
        place = _end(BETWEEN, text, place)
        line, before = line + text.count("\n", before, place), place
        if text.startswith("]", place):
            return
        try:
            value, end = decode(text, place)
        except (ValueError, RecursionError) as error:
            yield line, error, text[place : place + LONGEST_SHOWN] or "the list has no end"
            return
        yield line, value, text[place : min(end, place + LONGEST_SHOWN)]
        place = end


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    found = pattern.match(text, place)
    return found.end() if found else place


def _cells(values: list[Any]) -> list[str]:
    return [value if isinstance(value, str) else "" if value is None else _json(value) for value in values]


def _json(value: Any) -> str:
    """Return a value's JSON, or nothing where it is nested too deeply to be written."""
    try:
        return AS_JSON(value)
    except RecursionError:
        return ""
