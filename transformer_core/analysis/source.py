"""Where a site is computed: the line of this package that taps it, found in the source itself.

Read next: config.py, to start over from the leaves.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class SourceLine:
    """A line of code.

    Args:
        path: from the project's root, such as ``transformer_core/layers/attention.py``.
        number: from 1.
        code: without its indent.
    """

    path: str
    number: int
    code: str


@lru_cache(maxsize=1)
def _taps() -> dict[str, tuple[SourceLine, ...]]:
    found: dict[str, list[SourceLine]] = {}
    for path in sorted(PACKAGE.glob("**/*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            _, tap, rest = line.partition('.tap("')
            if tap:
                place = SourceLine(path.relative_to(PACKAGE.parent).as_posix(), number, line.strip())
                found.setdefault(rest.partition('"')[0], []).append(place)
    return {leaf: tuple(places) for leaf, places in found.items()}


def tapped_at(leaf: str) -> tuple[SourceLine, ...]:
    """Return every line that taps a leaf site such as ``weights``; empty where none does."""
    return _taps().get(leaf, ())
