"""Sequences of letters to copy, reverse or sort: tasks for which the right cross-attention is known."""

from random import Random
from string import ascii_lowercase
from typing import Literal, get_args

from transformer_core.config import require_choice

Rule = Literal["copy", "reverse", "sort"]
Pair = tuple[str, str]
SHORTEST = 2
SMALL_SPACE = 1 << 31


def answer(rule: Rule, source: str) -> str:
    """Apply a rule to letters with blanks between them.

    Raises:
        ValueError: there is no such rule.
    """
    require_choice("rule", rule, get_args(Rule))
    letters = source.split()
    if rule == "sort":
        letters = sorted(letters)
    return " ".join(reversed(letters) if rule == "reverse" else letters)


def sequences(
    rule: Rule, *, symbols: int, length: int, train: int, held_out: int, seed: int = 0
) -> tuple[list[Pair], list[Pair]]:
    """Return pairs of a source and its answer to train on, and pairs that are held out; all sources differ.

    All lengths are about equally frequent, as far as there are enough sequences of a length.

    Args:
        rule: from a source to its answer.
        symbols: how many letters there are, from a on; 2 to 26.
        length: most letters a source; the fewest are 2.
        train, held_out: how many pairs.
        seed: of the choice; the same seed gives the same pairs.

    Raises:
        ValueError: there is no such rule, a number is outside its range, or there are too few sequences.
    """
    require_choice("rule", rule, get_args(Rule))
    for name, value, least in (("length", length, SHORTEST), ("train", train, 0), ("held_out", held_out, 0)):
        if value < least:
            raise ValueError(f"{name}={value} must be at least {least}")
    if not 2 <= symbols <= len(ascii_lowercase):
        raise ValueError(f"symbols={symbols} must be at least 2 and at most {len(ascii_lowercase)}")
    rng = Random(f"{symbols} {length} {seed}")
    sources = _sources(symbols, length, train + held_out, rng)
    pairs = [(source, answer(rule, source)) for source in sources]
    return pairs[:train], pairs[train:]


def _sources(symbols: int, length: int, number: int, rng: Random) -> list[str]:
    available = {size: symbols**size for size in range(SHORTEST, length + 1)}
    if number > sum(available.values()):
        raise ValueError(
            f"train and held_out together are {number}; symbols={symbols} and length={length} allow only "
            f"{sum(available.values())} different sequences"
        )
    sources, wanted = [], number
    for place, (size, space) in enumerate(available.items()):
        share = min(space, wanted // (len(available) - place))
        sources += [_letters(code, size, symbols) for code in _codes(space, share, rng)]
        wanted -= share
    rng.shuffle(sources)
    return sources


def _codes(space: int, number: int, rng: Random) -> list[int]:
    """Draw different numbers below `space`, which may be too large for random.sample."""
    if space < SMALL_SPACE:
        return rng.sample(range(space), number)
    codes: dict[int, None] = {}
    while len(codes) < number:
        codes[rng.randrange(space)] = None
    return list(codes)


def _letters(code: int, size: int, symbols: int) -> str:
    letters = []
    for _ in range(size):
        code, letter = divmod(code, symbols)
        letters.append(ascii_lowercase[letter])
    return " ".join(letters)
