"""Pairs of a sentence and its translation: pasted lines, or two files whose lines belong together.

A pasted line has a tab, or else one vertical bar, between both sides, as spreadsheets and Tatoeba's files have it. In
a folder, NAME.L1 and NAME.L2, plain or gzipped, belong together, as in Multi30k: line n of one is line n of the other.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transformer_core.untrusted.tables.cleaning import Broken, cleaned
from transformer_core.untrusted.tables.opening import IntakeError, utf8_lines

PAIRS_FILE = "pairs.tsv"
FEWEST, MOST_LINES, LONGEST_SIDE = 24, 200_000, 500
PACKED = ".gz"
TRAINED_ON, FIRST = "train", "en"  # are offered first
MOST_NAMES = 2_000
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class ReadPairs:
    """Pairs that were read, each source once.

    Args:
        pairs: in their order.
        broken: lines that were left out.
    """

    pairs: tuple[Pair, ...]
    broken: Broken


def _side(text: str) -> str:
    return " ".join(cleaned(text)[0].split())[:LONGEST_SIDE]


def _collected(lines: Iterable[tuple[int, str, tuple[str, ...]]], what: str) -> ReadPairs:
    """Keep the first pair of each source, and count what is none.

    Args:
        lines: number, line, and its cells.
        what: names the text in the error.
    """
    found: dict[str, str] = {}
    broken = Broken()
    for number, line, cells in itertools.islice(lines, MOST_LINES):
        sides = [_side(cell) for cell in cells]
        if not any(sides):
            continue
        if len(sides) != 2:
            broken.add(number, "too_few_cells" if len(sides) < 2 else "too_many_cells", line)
        elif not all(sides):
            broken.add(number, "empty_text", line)
        else:
            found.setdefault(*sides)
    if len(found) < FEWEST:
        hint = f"; {broken.words()}" if broken else ""
        raise IntakeError(f"{what} has {len(found):,} different pairs; at least {FEWEST} are needed{hint}")
    return ReadPairs(tuple(found.items()), broken)


def read_pasted_pairs(text: str) -> ReadPairs:
    """Read pasted lines, a pair each.

    Raises:
        IntakeError: there are too few pairs.
    """
    rows = enumerate(cleaned(text)[0].split("\n"), 1)
    return _collected(
        ((number, row, tuple(row.split("\t" if "\t" in row else "|"))) for number, row in rows), "the text"
    )


def aligned_files(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Return the pairs of files in a folder whose lines may belong together, both ways, by "NAME: L1 → L2".

    Raises:
        IntakeError: there are none.
        OSError: the folder cannot be read.
    """
    groups: dict[str, dict[str, Path]] = {}
    for path in itertools.islice(sorted(folder.iterdir()), MOST_NAMES):
        name = path.name.removesuffix(PACKED)
        stem, _, language = name.rpartition(".")
        if stem and 2 <= len(language) <= 3 and language.isalpha() and path.is_file():
            groups.setdefault(stem, {})[language] = path
    found = {
        f"{stem}: {one} → {other}": (paths[one], paths[other])
        for stem, paths in sorted(groups.items(), key=lambda group: (group[0] != TRAINED_ON, group[0]))
        for one, other in sorted(itertools.permutations(paths, 2), key=lambda pair: (pair[0] != FIRST, pair))
    }
    if not found:
        raise IntakeError(f"{folder.name} holds no two files NAME.L1 and NAME.L2, such as train.en.gz and train.fr.gz")
    return found


def read_aligned(first: Path, second: Path, *, limit: int, seed: int) -> ReadPairs:
    """Read two files whose lines belong together, and choose some pairs at random.

    Args:
        limit: most pairs.
        seed: of the choice.

    Raises:
        IntakeError: the files differ in length, are no UTF-8, or hold too few pairs.
        OSError: a file cannot be read.
    """
    rows = _collected(_together(first, second), f"{first.name} with {second.name}")
    chosen = np.random.default_rng(seed).permutation(len(rows.pairs))[:limit]
    return ReadPairs(tuple(rows.pairs[place] for place in chosen), rows.broken)


def _together(first: Path, second: Path) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    for number, (one, other) in enumerate(itertools.zip_longest(utf8_lines(first), utf8_lines(second)), 1):
        if one is None or other is None:
            raise IntakeError(f"{first.name} and {second.name} must have as many lines; one has no line {number:,}")
        yield number, one, (one, other)


def write_pairs(pairs: Iterable[Pair]) -> bytes:
    """Return pairs as lines with a tab, in UTF-8, as a run keeps them."""
    return "".join(f"{one}\t{other}\n" for one, other in pairs).encode()


def read_pairs(path: Path) -> list[Pair]:
    """Read what write_pairs wrote.

    Raises:
        IntakeError: with the file, the line and what is wrong with it.
        OSError: the file cannot be opened.
    """
    found = []
    for number, line in enumerate(utf8_lines(path), 1):
        cells = line.rstrip("\n").split("\t")
        if len(cells) != 2 or not all(cells):
            raise IntakeError(f"{path.name}, line {number} must have two texts with a tab between them")
        found.append((cells[0], cells[1]))
    return found
