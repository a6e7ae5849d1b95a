"""From a file or an upload to its characters: bounds on its size, unpacking of gzip, and its encoding.

UTF-8 and the byte order marks of UTF-16 are recognised with certainty; charset-normalizer guesses other encodings from
the lines that are not ASCII. Sources: RFC 1952 (gzip); the Unicode Standard, sections 2.6 and 3.9.
"""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from charset_normalizer import from_bytes

MOST_BYTES = 50 << 20
MOST_UNPACKED = 100 << 20
MOST_ROWS = 5_000_000
MOST_COLUMNS = 200
LONGEST_TEXT = 20_000
LONGEST_LABEL = 80
FEWEST_LABELS, MOST_LABELS = 2, 20
LONGEST_LINE = 16 << 20  # bytes, in strict mode
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
GUESSED_WHEN_SHORT = ("gb18030", "big5", "cp1252", "latin_1")
GUESSED = (*GUESSED_WHEN_SHORT, "cp1251", "shift_jis", "euc_kr")
ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "windows-1252", "latin-1")
ENCODINGS += ("windows-1250", "windows-1251", "shift_jis", "euc_jp", "euc_kr", "koi8-r")
OUR_NAMES = {"cp1252": "windows-1252", "latin_1": "windows-1252", "cp1251": "windows-1251"}
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SHORT = 100
SAMPLE = 1 << 16
BEFORE, LONGEST_SAMPLED = 200, 1 << 12
ASCII = re.compile(rb"[\x00-\x7f]")
BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
LINE_END = re.compile(rb"[\r\n]")
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
MOST_CONTROLS_IN_UTF8, MOST_CONTROLS, MOST_LOST = 0.3, 0.05, 0.1
UNDECODABLE = "\udcff"
ON_ERROR = "transformer_core.intake"


class IntakeError(ValueError):
    """Input that cannot be used; the message says what came and what is needed."""


def megabytes(n_bytes: int) -> str:
    """Return a number of bytes in megabytes, with the unit."""
    return f"{n_bytes / (1 << 20):.1f} MB"


def name_of(source: Source, name: str) -> str:
    """Return the name of a source in messages."""
    return name or (source.name if isinstance(source, Path) else "the file")


def open_bytes(source: Source, name: str) -> bytes:
    """Return all bytes of a source, unpacked.

    Args:
        source: bytes, or a path; either may be gzipped, which is recognised by its first bytes.
        name: what to call it in messages.

    Raises:
        IntakeError: it is empty, over MOST_BYTES, over MOST_UNPACKED when unpacked, over MOST_ROWS lines, broken, or no
            table by its first bytes.
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
    if (lines := max(raw.count(b"\n"), raw.count(b"\r"))) > MOST_ROWS:
        raise IntakeError(f"{name} has {lines:,} lines; at most {MOST_ROWS:,} are read")
    for beginning, kind in NO_TABLES.items():
        if raw.startswith(beginning):
            raise IntakeError(f"{name} is {kind}; save the table as CSV, TSV or JSONL, plain or gzipped")
    if raw[257:262] == b"ustar":
        raise IntakeError(f"{name} is a tar archive; bring the CSV, TSV or JSONL file itself")
    return raw


def utf8_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file in UTF-8, gzipped where its name ends in .gz; it is read as a stream.

    Raises:
        IntakeError: with the file, the line and what is wrong with it.
        OSError: the file cannot be opened.
    """
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        for number in count(1):
            try:
                raw = file.readline(LONGEST_LINE + 1)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise IntakeError(f"{path.name}, line {number}: the gzip data is broken: {error}") from None
            if not raw:
                return
            if len(raw) > LONGEST_LINE:
                raise IntakeError(
                    f"{path.name}, line {number} is longer than {LONGEST_LINE} bytes, the most that are read"
                )
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise IntakeError(
                    f"{path.name}, line {number}: byte {error.start + 1} of the line is not UTF-8; "
                    "save the file as UTF-8"
                ) from None


def _unpacked(raw: bytes, name: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            unpacked = file.read(MOST_UNPACKED + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise IntakeError(f"{name}: the gzip data is broken: {error}") from None
    if len(unpacked) > MOST_UNPACKED:
        raise IntakeError(f"{name} is larger than {megabytes(MOST_UNPACKED)} when unpacked, the most that is read")
    return unpacked


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Replace bytes that cannot be decoded by a lone surrogate, which no decoded text contains.

    Their row is lost in any case, so the bytes up to the next ASCII byte are replaced with them: that keeps a wrongly
    chosen encoding fast.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    following = None if error.encoding.startswith("utf-16") else ASCII.search(error.object, error.end)
    return UNDECODABLE, following.start() if following else error.end


codecs.register_error(ON_ERROR, _mark)


def detect_encoding(raw: bytes, name: str) -> str:
    """Return the encoding of a text, an entry of ENCODINGS.

    Args:
        raw: all bytes of the text.
        name: what to call it in messages.

    Raises:
        IntakeError: the bytes are no text.
    """
    if raw.startswith(UTF16_MARKS):
        return "utf-16"
    is_utf8 = _is_utf8(raw)
    beginning = raw[:SAMPLE]
    share = 1 - len(beginning.translate(None, CONTROLS)) / max(len(beginning), 1)
    if share > (MOST_CONTROLS_IN_UTF8 if is_utf8 else MOST_CONTROLS):
        raise IntakeError(f"{name} is no text: {share:.0%} of its beginning is control characters; save it as UTF-8")
    return "utf-8" if is_utf8 else _guess(raw, name)


def require_encoding(encoding: str) -> str:
    """Return the encoding, or raise IntakeError where it is none of ENCODINGS."""
    if encoding not in ENCODINGS:
        raise IntakeError(f"encoding={encoding!r:.40} must be one of {', '.join(ENCODINGS)}")
    return encoding


def open_text(raw: bytes, encoding: str) -> io.TextIOWrapper:
    """Return the characters as a stream with "\\n" at every line end; UNDECODABLE marks bytes that are none."""
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    if encoding.startswith("utf-16"):
        codec = "utf-16" if raw.startswith(UTF16_MARKS) else "utf-16-be" if encoding == "utf-16-be" else "utf-16-le"
    return io.TextIOWrapper(io.BytesIO(raw), codec, errors=ON_ERROR)


def _is_utf8(raw: bytes) -> bool:
    """Return whether at least half of the lines that are not ASCII are UTF-8; a few broken rows decide nothing."""
    right = wrong = 0
    for line in _lines_beyond_ascii(raw):
        try:
            codecs.utf_8_decode(line, "strict", False)
            right += 1
        except UnicodeDecodeError:
            wrong += 1
    return right >= wrong


def _guess(raw: bytes, name: str) -> str:
    lines = b"\n".join(_lines_beyond_ascii(raw))
    is_short = len(lines.translate(None, bytes(range(128)))) < SHORT
    candidates: list[str] = [*(GUESSED_WHEN_SHORT if is_short else GUESSED)]
    best = from_bytes(lines, cp_isolation=candidates, preemptive_behaviour=False).best()
    guess = "cp1252" if best is None else best.encoding
    lost = lines.decode(guess, "replace").count("\ufffd")
    if lost > MOST_LOST * len(lines):
        raise IntakeError(f"{name} is in no encoding that is known here; save it as UTF-8")
    return OUR_NAMES.get(guess, guess)


def _lines_beyond_ascii(raw: bytes) -> Iterator[bytes]:
    """Yield the first lines that hold more than ASCII, SAMPLE bytes in all, each from near its first such byte on."""
    place = size = 0
    while size < SAMPLE and (found := BEYOND_ASCII.search(raw, place)):
        end = LINE_END.search(raw, found.start(), found.start() + LONGEST_SAMPLED)
        stop = end.start() if end else found.start() + LONGEST_SAMPLED
        line = raw[max(place, found.start() - BEFORE) : stop]
        yield line
        size += len(line)
        place = stop
