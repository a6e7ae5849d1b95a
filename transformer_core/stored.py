"""Numbers of a stored row, as JSON gives it: each is checked before it is used."""

from collections.abc import Mapping
from typing import Any


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
