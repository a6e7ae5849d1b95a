"""Bounds: how much of what people bring is read, and the error that says what came and what is needed.

Read next: opening.py.
"""

MOST_BYTES = 50 << 20
MOST_UNPACKED = 100 << 20
MOST_ROWS = 5_000_000
MOST_COLUMNS = 200
LONGEST_TEXT = 20_000
LONGEST_LABEL = 80
FEWEST_LABELS, MOST_LABELS = 2, 20
SHOWN_BROKEN = 20


class IntakeError(ValueError):
    """What was brought cannot be used; the words say what came and what is needed."""


def megabytes(n_bytes: int) -> str:
    """Return a size in words."""
    return f"{n_bytes / (1 << 20):.1f} MB"
