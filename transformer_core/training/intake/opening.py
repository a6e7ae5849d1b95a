"""Opening: the bytes of an upload or a file, unpacked where they are gzipped, within bounds that are checked first.

Format: RFC 1952 (gzip). Read next: decoding.py.
"""

import gzip
import io
import zlib
from pathlib import Path

from transformer_core.training.intake.bounds import MOST_BYTES, MOST_UNPACKED, IntakeError, megabytes

Source = bytes | Path
GZIP = b"\x1f\x8b"
NO_TABLES = {
    b"PK\x03\x04": "a zip archive, as Excel's workbooks are",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"%PDF": "a PDF document",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ": "packed with xz",
    b"\x28\xb5\x2f\xfd": "packed with zstandard",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
}


def name_of(source: Source, name: str) -> str:
    """Return what to call a source in messages."""
    return name or (source.name if isinstance(source, Path) else "the file")


def open_bytes(source: Source, name: str) -> bytes:
    """Return all bytes of a source, unpacked.

    Args:
        source: bytes, or a path; either may be gzipped, which its first bytes tell.
        name: what to call it in messages.

    Raises:
        IntakeError: it is empty, over MOST_BYTES, over MOST_UNPACKED when unpacked, broken, or no table by its first
            bytes.
        OSError: the file cannot be read.
    """
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if size > MOST_BYTES:
        raise IntakeError(f"{name} has {megabytes(size)}; at most {megabytes(MOST_BYTES)} are read")
    raw = source if isinstance(source, bytes) else source.read_bytes()
    if raw.startswith(GZIP):
        raw = _unpacked(raw, name)
    if not raw or raw.isspace():
        raise IntakeError(f"{name} is empty; it needs rows with a text and a label")
    for beginning, kind in NO_TABLES.items():
        if raw.startswith(beginning):
            raise IntakeError(f"{name} is {kind}; save the table as CSV, TSV or JSONL, plain or gzipped")
    if raw[257:262] == b"ustar":
        raise IntakeError(f"{name} is a tar archive; bring the CSV, TSV or JSONL file itself")
    return raw


def _unpacked(raw: bytes, name: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            unpacked = file.read(MOST_UNPACKED + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise IntakeError(f"{name}: the gzip data is broken: {error}") from None
    if len(unpacked) > MOST_UNPACKED:
        raise IntakeError(f"{name} is larger than {megabytes(MOST_UNPACKED)} when unpacked, the most that is read")
    return unpacked
