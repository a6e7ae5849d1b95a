"""What was measured once by a command and is shipped in assets/measured: JSON with a row a line, written and read."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from transformer_core.kept import PROJECT

T = TypeVar("T")
FOLDER = PROJECT / "assets" / "measured"


def write_shipped(path: Path, head: Mapping[str, Any], **tables: Sequence[Mapping[str, Any]]) -> None:
    """Write what was measured.

    Args:
        head: how, by name.
        tables: the rows of each, by its name.
    """
    lines = [f'  "{name}": {json.dumps(value)}' for name, value in head.items()]
    for name, rows in tables.items():
        lines.append(f'  "{name}": [' + ",".join(f"\n    {json.dumps(row)}" for row in rows) + "\n  ]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_shipped(path: Path, read: Callable[[Any], T], *, largest: int) -> T:
    """Return what `read` makes of a file that write_shipped wrote.

    Args:
        read: checks what came, and raises ValueError.
        largest: bytes that are read.

    Raises:
        ValueError: the file is too large, is no JSON, or holds impossible values.
        OSError: it cannot be read.
    """
    if path.stat().st_size > largest:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes; at most {largest:,} are read")
    try:
        return read(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: {error!s:.300}") from error
