"""Labels: what stands in a label column, numbered in the order in which people would write the classes down.

Read next: table.py.
"""

import re
from collections.abc import Iterable, Sequence

from transformer_core.training.intake.bounds import FEWEST_LABELS, LONGEST_LABEL, MOST_LABELS, IntakeError
from transformer_core.training.intake.broken import Reason
from transformer_core.training.intake.cleaning import SURROGATES, cleaned, shown

MOST_COUNTED = 1_000
SHOWN, LONGEST_SHOWN = 5, 24
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
DIGITS = re.compile(r"([0-9]+)")


def natural_order(labels: Iterable[str]) -> list[str]:
    """Return labels in order: numbers by their size, words by the alphabet, the numbers within them by size.

    "0", "1", ..., "10"; "1 star", "2 stars", ..., "10 stars".
    """
    labels = sorted(labels)
    if all(NUMBER.fullmatch(label) for label in labels):
        return sorted(labels, key=float)
    return sorted(labels, key=_chunks)


def _chunks(label: str) -> list[tuple[int, float, str]]:
    parts = DIGITS.split(label.casefold())
    return [(0, float(part), "") if part.isascii() and part.isdigit() else (1, 0.0, part) for part in parts if part]


class LabelNumbers:
    """Numbers for labels in the order they come; the same label, but for blanks around and within it, has the same.

    Args:
        column: the column's name, for messages.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._of: dict[str, int | Reason] = {}

    def of(self, labels: Sequence[str]) -> list[int | Reason]:
        """Return the number of each label, or why it is none.

        Raises:
            IntakeError: over MOST_COUNTED different labels came.
        """
        for label in set(labels) - self._of.keys():
            self._of[label] = self._learned(label)
        return [self._of[label] for label in labels]

    def _learned(self, label: str) -> int | Reason:
        name = " ".join(cleaned(label)[0].split())
        if SURROGATES.search(name):
            return "undecodable"
        if not name:
            return "empty_label"
        if len(name) > LONGEST_LABEL:
            return "long_label"
        if name not in self._numbers:
            if len(self.names) == MOST_COUNTED:
                raise IntakeError(_wrong_number(self.column, f"more than {MOST_COUNTED:,}", self.names))
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


def require_classes(column: str, names: Sequence[str]) -> None:
    """Raise IntakeError unless these labels are classes to learn: neither too few nor too many."""
    if not FEWEST_LABELS <= len(names) <= MOST_LABELS:
        raise IntakeError(_wrong_number(column, f"{len(names):,}", names))


def _wrong_number(column: str, count: str, names: Sequence[str]) -> str:
    some = ", ".join(repr(shown(name, LONGEST_SHOWN)) for name in names[:SHOWN])
    more = ", ..." * (len(names) > SHOWN)
    return (
        f"label_column={shown(column, LONGEST_LABEL)!r} has {count} different label{'s' * (len(names) != 1)} "
        f"({some}{more}); {FEWEST_LABELS} to {MOST_LABELS} are needed"
    )
