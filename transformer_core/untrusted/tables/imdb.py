"""IMDB: the Large Movie Review Dataset as its folder, its tar archive, or tables; a balanced sample of it.

A review is chosen by a hash of the seed and its name, so that the folder, the archive in any order, and every larger
limit choose alike. The archive is read as a stream, and nothing of it is written to disk; links, devices, names that
lead out of the archive, and more or larger members than expected are refused.
Data: Maas et al. 2011. Formats: POSIX.1-2001 (pax, ustar), RFC 1952 (gzip).
"""

import gzip
import heapq
import io
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import product
from pathlib import Path

from transformer_core.examples import Example
from transformer_core.untrusted.tables.cleaning import cleaned, shown
from transformer_core.untrusted.tables.opening import GZIP, LONGEST_TEXT, IntakeError, megabytes
from transformer_core.untrusted.tables.preview import preview
from transformer_core.untrusted.tables.table import read_table

MOST_PACKED = 200 << 20
MOST_STREAMED = 1 << 30
MOST_MEMBERS = 250_000
MOST_BETWEEN = 1 << 20
BLOCK = 512
PARTS = ("train", "test")
CLASSES = ("neg", "pos")
LONGEST_REVIEW = 1 << 18
MOST_FILES = 100_000
LINE_BREAKS = re.compile(r"(\s*<br\s*/?>\s*)+", re.IGNORECASE)
ARCHIVES = (".tar", ".tar.gz", ".tgz")
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz")
NEEDED = "aclImdb/{train,test}/{pos,neg}/*.txt, its .tar.gz, or a table with the columns text and label"
File = tuple[tuple[str, ...], bytes]


def members(
    path: Path, wanted: Callable[[tuple[str, ...]], bool], *, longest: int
) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Yield the wanted members of a tar: the parts of their names, and their bytes.

    Args:
        path: a tar, plain or gzipped.
        wanted: from the parts of a name to whether its bytes are needed.
        longest: bytes that a wanted member may have.

    Raises:
        IntakeError: the archive is broken, over a bound, or holds what a plain archive of texts does not.
        OSError: the file cannot be read.
    """
    if path.stat().st_size > MOST_PACKED:
        raise IntakeError(
            f"{path.name} has {megabytes(path.stat().st_size)}; at most {megabytes(MOST_PACKED)} are read"
        )
    with path.open("rb") as packed, gzip.open(packed) as unpacked:
        is_gzip = packed.read(len(GZIP)) == GZIP
        packed.seek(0)
        stream = _Bounded(unpacked if is_gzip else packed, path.name)
        try:
            with tarfile.open(fileobj=stream, mode="r|", errorlevel=1) as archive:
                yield from _members(archive, stream, path.name, wanted, longest)
            if stream.last.strip(b"\0"):
                raise IntakeError(f"{path.name} is cut off: a whole tar archive ends in zeros")
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, OverflowError, UnicodeError) as error:
            raise IntakeError(f"{path.name} is no whole tar archive: {error}") from None


def _members(
    archive: tarfile.TarFile,
    stream: "_Bounded",
    name: str,
    wanted: Callable[[tuple[str, ...]], bool],
    longest: int,
) -> Iterator[tuple[tuple[str, ...], bytes]]:
    count = 0
    while (member := archive.next()) is not None:
        archive.members.clear()  # pyright: ignore[reportAttributeAccessIssue]
        count += 1
        if count > MOST_MEMBERS:
            raise IntakeError(f"{name} holds more than {MOST_MEMBERS:,} files, the most that are looked at")
        parts = tuple(part for part in member.name.split("/") if part not in ("", "."))
        if member.name.startswith("/") or ".." in parts or "\\" in member.name:
            raise IntakeError(f"{name} holds {shown(member.name, 80)!r}, whose name leads out of the archive")
        if not (member.isreg() or member.isdir()):
            raise IntakeError(f"{name} holds {shown(member.name, 80)!r}, which is neither a file nor a folder")
        if not 0 <= member.size <= MOST_STREAMED:
            raise IntakeError(f"{name} holds {shown(member.name, 80)!r} of {megabytes(member.size)}")
        stream.allow(member.size)
        if member.isreg() and wanted(parts):
            if member.size > longest:
                raise IntakeError(
                    f"{name} holds {parts[-1]!r:.100} of {member.size:,} bytes; at most {longest:,} are read"
                )
            file = archive.extractfile(member)
            yield parts, file.read() if file else b""


class _Bounded(io.RawIOBase):
    """A stream with two bounds on the bytes that are read: in all, and up to the header of the next member.

    tarfile reads extended headers of any size into memory; the second bound prevents that.
    """

    def __init__(self, file: io.BufferedIOBase | gzip.GzipFile, name: str) -> None:
        self._file, self._name = file, name
        self._total = 0
        self.last = b""
        self._allowed = MOST_BETWEEN

    def allow(self, size: int) -> None:
        """Allow the bytes of a member of this size, and the headers up to the next one."""
        self._allowed = size + MOST_BETWEEN

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.last = (self.last + data)[-BLOCK:]
        self._total += len(data)
        self._allowed -= len(data)
        if self._total > MOST_STREAMED or self._allowed < 0:
            raise IntakeError(
                f"{self._name} holds more than its list of files says, or over {megabytes(MOST_STREAMED)}"
            )
        return data


def read_imdb(path: str | os.PathLike[str], *, limit: int | None, seed: int) -> tuple[list[Example], list[Example]]:
    """Read reviews; label 1 is positive. A tag <br /> becomes a blank, as in tables of this data.

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
    """The reviews with the smallest hashes, `per_class` of each part and class."""

    def __init__(self, per_class: int | None, seed: int) -> None:
        self._per_class, self._seed = per_class, seed
        self._heaps: dict[tuple[str, str], list[tuple[int, str]]] = {
            (part, name): [] for part in PARTS for name in CLASSES
        }

    def wants(self, parts: tuple[str, ...]) -> bool:
        """Return whether a file of this name would be chosen."""
        if len(parts) < 3 or parts[-3:-1] not in self._heaps or not parts[-1].endswith(".txt") or parts[-1][0] == ".":
            return False
        heap = self._heaps[parts[-3], parts[-2]]
        return self._per_class is None or len(heap) < self._per_class or self._rank(parts) < -heap[0][0]

    def add(self, parts: tuple[str, ...], data: bytes) -> None:
        """Add a wanted file."""
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise IntakeError(f"{'/'.join(parts[-3:])}: byte {error.start + 1} is not UTF-8") from None
        self.add_text(parts, text)

    def add_text(self, parts: tuple[str, ...], text: str) -> None:
        """Add the text of a wanted file; a blank text is left out."""
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
    """Yield the reviews of a folder that are wanted, the parts of their names first; links are left out."""
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
