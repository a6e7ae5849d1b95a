"""Sentences whose class a small model can learn in seconds: each has one good word or one bad word."""

import random
from pathlib import Path

from transformer_core.training.examples import Example
from transformer_core.training.intake.labelled import write_labelled

GOOD, BAD = ("good", "great", "lovely", "superb"), ("bad", "awful", "dull", "poor")
FILLER = ("the", "film", "plot", "was", "and", "actor", "a", "scene", "story", "music")


def separable(n: int, *, seed: int = 0) -> list[Example]:
    """Return n different sentences; those with a good word are of class 1, those with a bad word of class 0."""
    rng = random.Random(seed)
    found: dict[str, int] = {}
    while len(found) < n:
        label = len(found) % 2
        words = [*rng.choices(FILLER, k=rng.randint(4, 14)), rng.choice((BAD, GOOD)[label])]
        rng.shuffle(words)
        found[" ".join(words) + "."] = label
    return [Example(text, label) for text, label in found.items()]


def write_separable(path: Path, n: int, *, seed: int = 0) -> None:
    """Write such sentences as a .csv."""
    write_labelled(path, separable(n, seed=seed))
