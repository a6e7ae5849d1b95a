"""Labelled examples, and their split into a training part and a held-out part with no text in both.

Texts that differ only in case and blanks count as the same text.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

LARGEST_PART = 4  # a quarter


@dataclass(frozen=True)
class Example:
    """A text and the number of its class."""

    text: str
    label: int


def distinct(examples: Iterable[Example]) -> list[Example]:
    """Return the first example of each text, in the order of the last ones; case and blanks make no difference."""
    return list({" ".join(e.text.casefold().split()): e for e in reversed(list(examples))}.values())[::-1]


def take(examples: Sequence[Example], quotas: Mapping[int, int], *, seed: int) -> tuple[list[Example], list[Example]]:
    """Shuffle examples and take out `quotas[label]` of each label; return the rest and those taken, in random order."""
    left = dict(quotas)
    rest, taken = [], []
    for place in np.random.default_rng(seed).permutation(len(examples)):
        example = examples[place]
        wanted = left.get(example.label, 0) > 0
        left[example.label] = left.get(example.label, 0) - wanted
        (taken if wanted else rest).append(example)
    return rest, taken


def most_held_out(there: int) -> int:
    """Return how many of so many different examples are held out at most."""
    return there // LARGEST_PART


def rows_needed(examples: int, held_out: int) -> int:
    """Return how many different texts `split` needs, so that as many are held out and left to learn as are asked for.

    >>> rows_needed(1_200, 200), rows_needed(1_200, 1_000)
    (1400, 4000)
    """
    return max(examples + held_out, LARGEST_PART * held_out)


def split(examples: Iterable[Example], held_out: int, seed: int) -> tuple[list[Example], list[Example]]:
    """Split examples into those to train on and those held out, each class in proportion, both in random order.

    Args:
        held_out: how many to hold out; at most a quarter of the different texts are, and at least one a class.
        seed: of the choice.

    Raises:
        ValueError: a class has fewer than two different texts, or held_out is less than 1.
    """
    if held_out < 1:
        raise ValueError(f"held_out={held_out} must be at least 1")
    unique = distinct(examples)
    counts = Counter(example.label for example in unique)
    for label, count in sorted(counts.items()):
        if count < 2:
            raise ValueError(f"label {label} has {count} text of its own; to hold one out, at least 2 are needed")
    return take(unique, _shares(counts, min(held_out, most_held_out(len(unique)))), seed=seed)


def _shares(counts: Mapping[int, int], total: int) -> dict[int, int]:
    """Return how many of each label add up to `total`, in proportion, by the method of the largest remainder."""
    everything = max(sum(counts.values()), 1)
    exact = {label: total * count / everything for label, count in sorted(counts.items())}
    shares = {label: int(share) for label, share in exact.items()}
    by_remainder = sorted(exact, key=lambda label: shares[label] - exact[label])
    for label in by_remainder[: total - sum(shares.values())]:
        shares[label] += 1
    return {label: max(share, 1) for label, share in shares.items()}
