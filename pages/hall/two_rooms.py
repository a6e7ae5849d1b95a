"""Two rooms of the same lecture side by side, from the files saved of them: what changed, and what stays hard."""

import base64
import binascii
import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pages.hall.take_home import TABLE
from transformer_core.shares import interval

COLUMNS = ("scene", "title", "answer", "count", "measured")  # that a room's table has
LARGEST, MOST_ROWS, LONGEST_CELL = 1_000_000, 5_000, 600
LARGEST_MB, MOST_BEFORE = 24, 1_000  # of a lecture's HTML file; bytes of which the first sign tells that it is one


class RoomTableError(ValueError):
    """A file is no table of a room; the message is a key of the words that say why, below lectures.no_room."""


@dataclass(frozen=True)
class OfRoom:
    """What one room has of a question or of a part.

    Args:
        n: answers; value: the share that was right, or the class's value; nan where there is none.
        low, high: the 95 % interval of a share; nan for a part.
    """

    n: int
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Compared:
    """One question, or one line of a part, in two rooms.

    Args:
        title: of the scene; what: "" for a question, whose value is the share of right answers; else the part's line.
        rooms: what each has.
        exact: the model's value of a part; nan for a question; unit: of a part.
    """

    title: str
    what: str
    rooms: tuple[OfRoom, OfRoom]
    exact: float = math.nan
    unit: str = "share"


def read_room(data: bytes) -> list[dict[str, str]]:
    """Read the table of a room: the one that its window with notes saved, or the one in the lecture's HTML file.

    Raises:
        RoomTableError: it is too large, is no text, has other columns, or is a page without a table.
    """
    if data[:MOST_BEFORE].decode("utf-8-sig", "replace").lstrip().startswith("<"):
        data = _table_in(data)
    if len(data) > LARGEST:
        raise RoomTableError("large")
    try:
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig")))
        if not rows.fieldnames or not set(COLUMNS) <= set(rows.fieldnames):
            raise RoomTableError("columns")
        found = []
        for row in rows:
            if len(found) == MOST_ROWS:
                raise RoomTableError("rows")
            found.append({name: str(value or "")[:LONGEST_CELL] for name, value in row.items() if name})
    except (UnicodeDecodeError, csv.Error):
        raise RoomTableError("text") from None
    return found


def _table_in(page: bytes) -> bytes:
    """Return the table that a lecture's HTML file has (file_of); nothing else of the page is read."""
    rest = page.partition(TABLE)[2]
    table, end, _ = rest.partition(b'"')
    if not table:
        raise RoomTableError("page")
    try:
        return base64.b64decode(table + (b"" if end else b"!"), validate=True)
    except binascii.Error:
        raise RoomTableError("damaged") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _count(row: dict[str, str]) -> int:
    value = _number(row["count"])
    return int(value) if 0 <= value <= 1e9 else 0


def _questions(rows: Sequence[dict[str, str]]) -> dict[tuple[str, str], OfRoom]:
    """Return the share of right answers by scene; a question that was never measured has none."""
    found: dict[tuple[str, str], OfRoom] = {}
    for scene, title in dict.fromkeys((row["scene"], row["title"]) for row in rows if not row.get("unit")):
        own = [row for row in rows if (row["scene"], row["title"]) == (scene, title) and row["measured"]]
        n = sum(map(_count, own))
        if n:
            share = sum(_count(row) for row in own if row["answer"] == row["measured"]) / n
            found[title, ""] = OfRoom(n, share, *interval(share, n))
    return found


def side_by_side(first: Sequence[dict[str, str]], second: Sequence[dict[str, str]]) -> list[Compared]:
    """Return what both rooms have of the same scenes, by their titles: questions first, the hardest of them first.

    Raises:
        RoomTableError: they have no question and no part in common.
    """
    both = _questions(first), _questions(second)
    found = [
        Compared(title, what, (both[0][title, what], both[1][title, what])) for title, what in both[0].keys() & both[1]
    ]
    found.sort(key=lambda one: (sum(room.value for room in one.rooms), one.title))
    parts = [{(row["title"], row["answer"]): row for row in rows if row.get("unit")} for rows in (first, second)]
    for place, row in parts[0].items():
        if (other := parts[1].get(place)) is not None:
            rooms = tuple(OfRoom(_count(one), _number(one.get("class", ""))) for one in (row, other))
            found.append(Compared(*place, (rooms[0], rooms[1]), _number(other.get("exact", "")), other["unit"]))
    if not found:
        raise RoomTableError("common")
    return found
