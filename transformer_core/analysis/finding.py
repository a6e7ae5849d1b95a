"""What a question about a scene comes to, and how its answers are named."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MUCH = 0.05  # of a probability: from here on it has moved much


@dataclass(frozen=True)
class Finding:
    """What a question comes to.

    Args:
        option: which of the things that can be came true.
        value: the number that decided it; what it means says the question.
    """

    option: str
    value: float


def moved(before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray) -> Finding:
    """Return whether another outcome wins after a change, or the winner has moved much or little; its move."""
    winner = int(np.argmax(before))
    by = float(after[winner] - before[winner])
    if int(np.argmax(after)) != winner:
        return Finding("flips", by)
    return Finding("much" if abs(by) >= MUCH else "little", by)


def plain_word(label: str) -> str:
    """Return a token's label without the mark of the blank before it."""
    return label.strip("␣")
