"""Copy, reverse and sort: sequences of letters, and what a rule makes of each.

Sorting as a toy task: Vinyals et al. 2016, section 6.1. Read next: passages.py.
"""

import string
from collections.abc import Callable
from random import Random
from typing import Literal, get_args

Rule = Literal["copy", "reverse", "sort"]
Pair = tuple[str, str]
RULES: dict[str, Callable[[list[str]], list[str]]] = {"copy": list, "reverse": lambda row: row[::-1], "sort": sorted}
SHORTEST = 2


def answer(rule: str, source: str) -> str:
    """Return what a rule makes of symbols that are separated by blanks.

    Raises:
        ValueError: the rule is unknown.
    """
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} is unknown; it must be one of {', '.join(map(repr, get_args(Rule)))}")
    return " ".join(RULES[rule](source.split()))


def sequences(
    rule: Rule, *, symbols: int, length: int, train: int, held_out: int, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Return pairs of a source and its answer to train on, and pairs whose sources do not occur among those.

    Args:
        symbols: how many of the letters a to z occur, from 1 to 26.
        length: of the longest source; the shortest has 2 letters. Every length is as likely as another.
        train, held_out: how many pairs of each; none occurs twice.
        seed: of the choice.

    Raises:
        ValueError: more than half of all sources are asked for, or an argument is outside its range.
    """
    if not 1 <= symbols <= len(string.ascii_lowercase):
        raise ValueError(f"symbols={symbols} must be from 1 to {len(string.ascii_lowercase)}")
    if length < SHORTEST:
        raise ValueError(f"length={length} must be at least {SHORTEST}")
    there_are = sum(symbols**size for size in range(SHORTEST, length + 1))
    if train + held_out > there_are // 2:
        raise ValueError(
            f"train={train} and held_out={held_out} ask for {train + held_out} different sequences, more than half of "
            f"the {there_are} that there are of symbols={symbols} and length={length}"
        )
    rng, letters = Random(seed), string.ascii_lowercase[:symbols]
    chosen: dict[str, None] = {}
    while len(chosen) < train + held_out:
        chosen.setdefault(" ".join(rng.choices(letters, k=rng.randint(SHORTEST, length))))
    pairs = [(source, answer(rule, source)) for source in chosen]
    rng.shuffle(pairs)
    return pairs[:train], pairs[train:]
