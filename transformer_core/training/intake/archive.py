"""Archive: the small files of a tar, read as a stream; nothing is ever written to disk.

Links, devices, names that lead out of the archive, and more or larger members than expected are refused.
Format: POSIX.1-2001 (pax, ustar), RFC 1952 (gzip). Read next: imdb.py.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from transformer_core.training.intake.bounds import IntakeError, megabytes
from transformer_core.training.intake.cleaning import shown
from transformer_core.training.intake.opening import GZIP

MOST_PACKED = 200 << 20
MOST_STREAMED = 1 << 30
MOST_MEMBERS = 250_000
MOST_BETWEEN = 1 << 20
BLOCK = 512


def members(
    path: Path, wanted: Callable[[tuple[str, ...]], bool], *, longest: int
) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Yield the parts of the names of those members that are wanted, and their bytes.

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
    """A stream that gives no more than a bounded number of bytes: in all, and before the next member is named.

    tarfile reads extended headers of any size into memory; the second bound stops it.
    """

    def __init__(self, file: io.BufferedIOBase | gzip.GzipFile, name: str) -> None:
        self._file, self._name = file, name
        self._total = 0
        self.last = b""
        self._allowed = MOST_BETWEEN

    def allow(self, size: int) -> None:
        """Let the bytes of a member of this size pass, and what may stand between it and the next one."""
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
