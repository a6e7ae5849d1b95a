"""What was measured once by a command and is shipped in assets/measured: JSON, a record a line, written and read."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from transformer_core.kept import PROJECT
from transformer_core.untrusted.schema import checked

T = TypeVar("T")
FOLDER = PROJECT / "assets" / "measured"
LARGEST = 256 << 10


def write_shipped(path: Path, found: Any) -> None:
    """Write what was measured, a dataclass: a field a line, and of fields that hold records, a record a line."""
    lines = []
    for name, value in asdict(found).items():
        records = isinstance(value, tuple) and all(isinstance(one, dict) for one in value)
        rows = "[" + ",".join(f"\n    {json.dumps(one)}" for one in value) + "\n  ]" if records else json.dumps(value)
        lines.append(f'  "{name}": {rows}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_shipped(path: Path, form: type[T]) -> T:
    """Return what a file that write_shipped wrote holds, as the dataclass that was written.

    Raises:
        ValueError: the file is too large, is no JSON, or holds impossible values.
        OSError: it cannot be read.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes; at most {LARGEST:,} are read")
    try:
        return checked(json.loads(path.read_text(encoding="utf-8")), form)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: {error!s:.300}") from error
