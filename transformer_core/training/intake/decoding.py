"""Decoding: which encoding the bytes are in, and the characters as a stream.

UTF-8 and the byte order marks of UTF-16 are told for certain; other encodings are guessed from the lines that are not
ASCII by charset-normalizer. Source: the Unicode Standard, sections 2.6 and 3.9. Read next: dialects.py.
"""

import codecs
import io
import re
from collections.abc import Iterator

from charset_normalizer import from_bytes

from transformer_core.training.intake.bounds import IntakeError

GUESSED_WHEN_SHORT = ("gb18030", "big5", "cp1252", "latin_1")
GUESSED = (*GUESSED_WHEN_SHORT, "cp1251", "shift_jis", "euc_kr")
ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "windows-1252", "latin-1")
ENCODINGS += ("windows-1250", "windows-1251", "shift_jis", "euc_jp", "euc_kr", "koi8-r")
OUR_NAMES = {"cp1252": "windows-1252", "latin_1": "windows-1252", "cp1251": "windows-1251"}
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SHORT = 100
SAMPLE = 1 << 16
BEFORE, LONGEST_LINE = 200, 1 << 12
ASCII = re.compile(rb"[\x00-\x7f]")
BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
LINE_END = re.compile(rb"[\r\n]")
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
MOST_CONTROLS_IN_UTF8, MOST_CONTROLS, MOST_LOST = 0.3, 0.05, 0.1
UNDECODABLE = "\udcff"
ON_ERROR = "transformer_core.intake"


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Put a lone surrogate, which no text can hold, in the place of bytes that cannot be decoded.

    The row is lost, so the bytes up to the next one of ASCII go with them: a wrongly chosen encoding costs no minutes.
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
        IntakeError: it is no text.
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
    """Return the characters as a stream with "\\n" at every line end; UNDECODABLE marks what is none."""
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    if encoding.startswith("utf-16"):
        codec = "utf-16" if raw.startswith(UTF16_MARKS) else "utf-16-be" if encoding == "utf-16-be" else "utf-16-le"
    return io.TextIOWrapper(io.BytesIO(raw), codec, errors=ON_ERROR)


def _is_utf8(raw: bytes) -> bool:
    """Tell whether at least half of the lines that are not ASCII are UTF-8, so that one broken row spoils no file."""
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
        end = LINE_END.search(raw, found.start(), found.start() + LONGEST_LINE)
        stop = end.start() if end else found.start() + LONGEST_LINE
        line = raw[max(place, found.start() - BEFORE) : stop]
        yield line
        size += len(line)
        place = stop
