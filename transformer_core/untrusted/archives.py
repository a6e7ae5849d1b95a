"""Untrusted zip files: everything is checked before it is used.

PKWARE's appnote, section 4.3: the directory at the end says what a zip holds.
"""

import io
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

MB = 1 << 20
LINK, TYPE_OF_FILE = 0o120000, 0o170000
LARGEST_DIRECTORY = 4 * MB
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ArchiveError(ValueError):
    """A zip that is refused: not a zip, damaged, too large, or with something in it that is not a plain file."""


class _BoundedReads(io.BufferedIOBase):
    """A file whose reads are bounded, since zipfile reads a directory of any size at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0 or size > LARGEST_DIRECTORY:
            place = self.file.tell()
            left = self.file.seek(0, io.SEEK_END) - place
            self.file.seek(place)
            if min(left, size if size and size > 0 else left) > LARGEST_DIRECTORY:
                raise ArchiveError(f"the zip's list of files has more than {LARGEST_DIRECTORY:,} bytes")
        return self.file.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def seekable(self) -> bool:
        return True


@contextmanager
def open_zip(file: Path | IO[bytes], *, most_bytes: int) -> Iterator[zipfile.ZipFile]:
    """Open a zip of at most `most_bytes`.

    Raises:
        ArchiveError: it is larger, or no zip that can be read; also raised for such errors in the body.
    """
    if isinstance(file, Path):
        with file.open("rb") as own, open_zip(own, most_bytes=most_bytes) as archive:
            yield archive
        return
    if (size := file.seek(0, io.SEEK_END)) > most_bytes:
        raise ArchiveError(f"the zip has {size:,} bytes; at most {most_bytes:,} are taken in")
    try:
        with zipfile.ZipFile(_BoundedReads(file)) as archive:  # type: ignore[arg-type]
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(f"this is no zip that can be read: {error!s:.200}") from None


def entries(
    archive: zipfile.ZipFile, *, most: int, most_bytes: int, most_ratio: float = math.inf
) -> dict[str, zipfile.ZipInfo]:
    """Return the files of a zip by name, from its directory alone.

    Args:
        most: files.
        most_bytes: all of them together, unpacked.
        most_ratio: of a file of more than a megabyte, unpacked to packed.

    Raises:
        ArchiveError: there is more, a name twice, a link, or a file with an uncommon compression.
    """
    files = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(files) > most:
        raise ArchiveError(f"the zip has {len(files):,} files; at most {most:,} are taken in")
    if (total := sum(entry.file_size for entry in files)) > most_bytes:
        raise ArchiveError(f"the zip unpacks to {total:,} bytes; at most {most_bytes:,} are taken in")
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in files:
        name = repr(entry.filename)[:100]
        if entry.filename in found:
            raise ArchiveError(f"the zip has {name} twice")
        if (entry.external_attr >> 16) & TYPE_OF_FILE == LINK:
            raise ArchiveError(f"{name} is a link; only files are taken in")
        if entry.compress_type not in PACKINGS:
            raise ArchiveError(f"{name} is packed in an uncommon way; only stored and deflated files are read")
        if entry.file_size > max(MB, most_ratio * max(1, entry.compress_size)):
            raise ArchiveError(
                f"{name} unpacks to {entry.file_size:,} bytes from {entry.compress_size:,}; "
                f"at most {most_ratio:g} times as many are taken in"
            )
        found[entry.filename] = entry
    return found


def extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, to: Path) -> None:
    """Unpack one file to the path `to`; at most as many bytes are written as the zip's directory states.

    Raises:
        ArchiveError: there are more.
    """
    to.parent.mkdir(exist_ok=True)
    left = entry.file_size
    with archive.open(entry) as source, to.open("wb") as target:
        while block := source.read(min(MB, left + 1)):
            left -= len(block)
            if left < 0:
                raise ArchiveError(f"{entry.filename!r:.100} is larger than it says")
            target.write(block)
