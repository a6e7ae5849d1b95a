"""Stored measurements: JSON files, written a row a line, whose values are each checked before they are used."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def write_stored(path: Path, entries: Mapping[str, Any]) -> None:
    """Write entries as a JSON object, an entry a line, and of a list of objects each on a line of its own."""
    lines = []
    for name, value in entries.items():
        of_rows = isinstance(value, list) and all(isinstance(row, dict) for row in value)
        rows = "[" + ",".join(f"\n    {json.dumps(row)}" for row in value) + "\n  ]" if of_rows else json.dumps(value)
        lines.append(f'  "{name}": {rows}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_stored(path: Path, largest: int, checked: Callable[[Mapping[str, Any]], T]) -> T:
    """Read a JSON object and return what is made of it.

    Args:
        largest: size in bytes of a file that is read.
        checked: from the object to the result; it raises ValueError where a value is impossible.

    Raises:
        ValueError: the file is too large, no JSON object, or holds impossible values; it says the file's name.
        OSError: it cannot be read.
    """
    if path.stat().st_size > largest:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes; at most {largest:,} are read")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it must hold an object")
        return checked(found)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: {error!s:.300}") from error


def whole_number(row: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Return a whole number of a row.

    Raises:
        ValueError: it is missing, no whole number, or out of its range.
    """
    count = row.get(name)
    if type(count) is not int or not least <= count <= most:
        raise ValueError(f"{name}={count!r:.80} must be a whole number from {least} to {most}")
    return count


def number(row: Mapping[str, Any], name: str, least: float, most: float) -> float:
    """Return a number of a row.

    Raises:
        ValueError: it is missing, no number, or out of its range.
    """
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{name}={value!r:.80} must be a number from {least:g} to {most:g}")
    return float(value)


def numbers(
    row: Mapping[str, Any], name: str, count: int, least: float, most: float, each: Callable[..., T] = number
) -> tuple[T, ...]:
    """Return a list of so many numbers of a row.

    Args:
        each: how one is checked, `number` or `whole_number`.

    Raises:
        ValueError: there is no list of this length, or one of its entries is not such a number.
    """
    values = row.get(name)
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(f"{name}={values!r:.80} must be a list of {count} numbers")
    return tuple(each({name: value}, name, least, most) for value in values)


def text(row: Mapping[str, Any], name: str, most: int, least: int = 1) -> str:
    """Return a text of a row, of `least` to `most` characters.

    Raises:
        ValueError: it is missing, no text, too long or too short, or cannot be printed.
    """
    value = row.get(name)
    if not isinstance(value, str) or not least <= len(value) <= most or not value.isprintable():
        raise ValueError(f"{name}={value!r:.80} must be printable, of {least} to {most:,} characters")
    return value


def rows(found: Mapping[str, Any], name: str, most: int, least: int = 1) -> list[Mapping[str, Any]]:
    """Return a list of objects, `least` to `most`.

    Raises:
        ValueError: it is missing, no such list, too long or too short.
    """
    listed = found.get(name)
    if not isinstance(listed, list) or not least <= len(listed) <= most or any(type(row) is not dict for row in listed):
        raise ValueError(f"{name} must be a list of {least} to {most} objects")
    return listed
