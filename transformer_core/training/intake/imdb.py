"""IMDB: the Large Movie Review Dataset as its authors give it away, or as a table, sampled in balance.

A review is chosen by a hash of the seed and its name, so that the folder, the archive in any order, and every larger
limit choose alike. Data: Maas et al. 2011. Read next: table.py.
"""

import heapq
import os
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import product
from pathlib import Path

from transformer_core.training.data import Example
from transformer_core.training.intake.archive import members
from transformer_core.training.intake.bounds import LONGEST_TEXT, IntakeError
from transformer_core.training.intake.cleaning import cleaned
from transformer_core.training.intake.preview import preview
from transformer_core.training.intake.table import read_table

PARTS = ("train", "test")
CLASSES = ("neg", "pos")
LONGEST_REVIEW = 1 << 18
MOST_FILES = 100_000
LINE_BREAKS = re.compile(r"(\s*<br\s*/?>\s*)+", re.IGNORECASE)
ARCHIVES = (".tar", ".tar.gz", ".tgz")
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz")
NEEDED = "aclImdb/{train,test}/{pos,neg}/*.txt, its .tar.gz, or a table with the columns text and label"
File = tuple[tuple[str, ...], bytes]


def read_imdb(path: str | os.PathLike[str], *, limit: int | None, seed: int) -> tuple[list[Example], list[Example]]:
    """Read reviews; label 1 is positive. A tag <br /> becomes a blank, as in the tables that people share.

    Args:
        path: a folder that is or holds aclImdb; its tar, plain or gzipped; a table (its reviews are all to train on);
            or a folder with tables train.csv and test.csv, in any form that read_table reads.
        limit: most reviews of each part, half of each class; None for all that can be balanced.
        seed: of the choice and the order. A smaller limit chooses the first reviews of a larger one.

    Returns:
        The reviews to train on and those to test on, both in random order.

    Raises:
        IntakeError: path is none of these, or a part of it is missing, broken or over a bound.
        OSError: a file cannot be read.
    """
    path = Path(path)
    if limit is not None and limit < 2:
        raise IntakeError(f"limit={limit} must be at least 2, one of each class")
    if not path.exists():
        raise IntakeError(f"{path.name} is not there; needed is {NEEDED}")
    chosen = _Chosen(None if limit is None else limit // 2, seed)
    if path.is_dir():
        folder = next((place for place in (path, path / "aclImdb") if (place / "train").is_dir()), None)
        if folder is None:
            tables = {part: _table_of(path, part) for part in PARTS}
        else:
            tables = {}
            _add_files(path, _files(folder, chosen), chosen)
    elif path.name.lower().endswith(ARCHIVES):
        tables = {}
        _add_files(path, members(path, chosen.wants, longest=LONGEST_REVIEW), chosen)
    else:
        tables = {"train": path}
    for part, table in tables.items():
        _add_table(table, part, chosen)
    return chosen.examples("train"), chosen.examples("test")


class _Chosen:
    """The reviews with the smallest hashes, so many of each part and class."""

    def __init__(self, per_class: int | None, seed: int) -> None:
        self._per_class, self._seed = per_class, seed
        self._heaps: dict[tuple[str, str], list[tuple[int, str]]] = {
            (part, name): [] for part in PARTS for name in CLASSES
        }

    def wants(self, parts: tuple[str, ...]) -> bool:
        """Tell whether a file of this name would be among the chosen."""
        if len(parts) < 3 or parts[-3:-1] not in self._heaps or not parts[-1].endswith(".txt") or parts[-1][0] == ".":
            return False
        heap = self._heaps[parts[-3], parts[-2]]
        return self._per_class is None or len(heap) < self._per_class or self._rank(parts) < -heap[0][0]

    def add(self, parts: tuple[str, ...], data: bytes) -> None:
        """Take in a wanted file."""
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise IntakeError(f"{'/'.join(parts[-3:])}: byte {error.start + 1} is not UTF-8") from None
        self.add_text(parts, text)

    def add_text(self, parts: tuple[str, ...], text: str) -> None:
        """Take in the text of a wanted file; a blank one is none."""
        text = cleaned(LINE_BREAKS.sub(" ", text))[0][:LONGEST_TEXT].strip()
        heap = self._heaps[parts[-3], parts[-2]]
        if text:
            heapq.heappush(heap, (-self._rank(parts), text))
        if len(heap) > (MOST_FILES if self._per_class is None else self._per_class):
            heapq.heappop(heap)

    def count(self, part: str, name: str) -> int:
        """Return how many reviews of a part and class are chosen."""
        return len(self._heaps[part, name])

    def examples(self, part: str) -> list[Example]:
        """Return as many reviews of each class as both have, in the order of their hashes."""
        most = min(self.count(part, name) for name in CLASSES)
        ranked = (
            (-rank, text, label)
            for label, name in enumerate(CLASSES)
            for rank, text in heapq.nlargest(most, self._heaps[part, name])
        )
        return [Example(text, label) for _, text, label in sorted(ranked)]

    def _rank(self, parts: tuple[str, ...]) -> int:
        name = "/".join((str(self._seed), *parts[-3:]))
        return int.from_bytes(blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest())


def _add_files(path: Path, files: Iterable[File], chosen: _Chosen) -> None:
    for parts, data in files:
        chosen.add(parts, data)
    for part, name in product(PARTS, CLASSES):
        if not chosen.count(part, name):
            raise IntakeError(f"{path.name} holds no review {part}/{name}/*.txt; needed is {NEEDED}")


def _files(folder: Path, chosen: _Chosen) -> Iterator[File]:
    """Yield the reviews of a folder that are wanted, the parts of their names first; links are none."""
    for part, name in product(PARTS, CLASSES):
        if not (folder / part / name).is_dir():
            raise IntakeError(f"{folder.name} holds no folder {part}/{name}; needed is {NEEDED}")
        with os.scandir(folder / part / name) as entries:
            for count, entry in enumerate(entries, 1):
                if count > MOST_FILES:
                    raise IntakeError(f"{part}/{name} holds more than {MOST_FILES:,} files")
                parts = (part, name, entry.name)
                if not (entry.is_file(follow_symlinks=False) and chosen.wants(parts)):
                    continue
                if entry.stat().st_size > LONGEST_REVIEW:
                    raise IntakeError(
                        f"{'/'.join(parts)!r:.100} has over {LONGEST_REVIEW:,} bytes, the most a review has"
                    )
                yield parts, Path(entry.path).read_bytes()


def _table_of(folder: Path, part: str) -> Path:
    for ending in TABLES:
        if (folder / f"{part}{ending}").is_file():
            return folder / f"{part}{ending}"
    raise IntakeError(f"{folder.name} holds neither the folder {part} nor {part}.csv; needed is {NEEDED}")


def _add_table(path: Path, part: str, chosen: _Chosen) -> None:
    view = preview(path)
    if view.text_column is None or view.label_column is None:
        found = ", ".join(repr(column.name) for column in view.columns[:8])
        raise IntakeError(f"{path.name} has no columns text and label; it has {found}")
    table = read_table(path, view.text_column, view.label_column)
    if len(table.label_names) != len(CLASSES):
        raise IntakeError(
            f"{path.name} has the labels {', '.join(table.label_names)}; a negative and a positive one are needed"
        )
    for place, example in enumerate(table):
        parts = (part, CLASSES[example.label], f"{place}.txt")
        if chosen.wants(parts):
            chosen.add_text(parts, example.text)
