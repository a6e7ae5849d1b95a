"""When the classes of held-out points come apart in a run, by a stated measure of what its frames recorded.

Measure: the share of held-out points whose class their nearest training points name, among all dimensions of the
sentence's vector (layout/neighbours.py). Border: halfway between the share of the commonest class and all of them.
They are apart where the lower end of the share's 95 % interval (Wilson 1927) reaches the border.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer_core.shares import interval


def border_of(labels: np.ndarray) -> float:
    """Return the share from which points are apart: halfway between that of the commonest class and 1.

    Shapes:
        labels: (point,), class numbers from 0
    """
    return (float(np.bincount(labels).max()) / len(labels) + 1) / 2


def are_separate(share: float, labels: np.ndarray) -> bool:
    """Return whether points of these classes are apart, of which neighbours name a share rightly.

    Shapes:
        labels: (point,), class numbers from 0; of no points, nothing is apart
    """
    return len(labels) > 0 and interval(share, len(labels))[0] >= border_of(labels)


@dataclass(frozen=True)
class Apart:
    """From where on held-out points are apart, up to the last frame.

    Args:
        kind: whether they are, at the last frame; "few": the share reaches the border there, and there are too few
            points to say that it does.
        frame, step: of the first frame from which on they are; of the last one where they are not.
        share, low, high: what neighbours name rightly at that frame, with its interval.
        border: that the lower end must reach.
        count: held-out points.
    """

    kind: Literal["apart", "few", "not_apart"]
    frame: int
    step: int
    share: float
    low: float
    high: float
    border: float
    count: int


def coming_apart(frames: Sequence[tuple[int, int, float]], labels: np.ndarray) -> Apart | None:
    """Return from which frame on the held-out points are apart; None where there is no frame or no point.

    Shapes:
        labels: (point,), class numbers of the held-out points

    Args:
        frames: number, step, and the share that neighbours name rightly, of each frame with a map, in order.
    """
    if not frames or not len(labels):
        return None
    first = len(frames)
    while first and are_separate(frames[first - 1][2], labels):
        first -= 1
    number, step, share = frames[min(first, len(frames) - 1)]
    low, high = interval(share, len(labels))
    border = border_of(labels)
    kind = "apart" if first < len(frames) else "few" if share >= border else "not_apart"
    return Apart(kind, number, step, share, low, high, border, len(labels))
