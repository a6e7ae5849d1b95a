"""Cleaning: one kind of line end, and no characters that nobody can see and no tokenizer expects.

Source: the Unicode Standard, sections 3.9 (surrogates), 5.8 (line ends) and 23.1 (control characters); the
Encoding Standard (WHATWG), windows-1252.
Read next: broken.py.
"""

import re
from dataclasses import dataclass

from transformer_core.training.intake.bounds import IntakeError

LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\u2028\u2029]")
MEANT = {code: character for code in range(0x80, 0xA0) if (character := bytes([code]).decode("cp1252", "ignore"))}
DROPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")
SURROGATES = re.compile("[\ud800-\udfff]")
TO_CLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")


def cleaned(text: str) -> tuple[str, int]:
    """Return a text with "\\n" at line ends and no control characters or outer blanks, and how many were dropped.

    Joiners and marks of direction stay: emoji and right-to-left text need them. Half characters stay too. U+0080 to
    U+009F become what Windows-1252 means by these numbers, as in HTML: nearly always they are its dashes and quotes.
    """
    text, n_dropped = DROPPED.subn("", LINE_ENDS.sub("\n", text).translate(MEANT))
    return text.strip(), n_dropped


def shown(text: str, longest: int) -> str:
    """Return the beginning of a text on one line, fit for any screen."""
    beginning = SURROGATES.sub("\ufffd", cleaned(text[: 4 * longest])[0])
    beginning = " ".join(beginning.split())
    return beginning if len(beginning) <= longest else beginning[: longest - 1] + "…"


@dataclass(frozen=True)
class CleanText:
    """A pasted text, ready to learn from.

    Args:
        text: the text.
        n_dropped: control characters and half characters that were left out.
        n_cut: characters beyond the bound that were left out.
    """

    text: str
    n_dropped: int
    n_cut: int


def clean_text(text: str, least: int, most: int) -> CleanText:
    """Clean a pasted text; what is over the bound is cut off.

    Args:
        text: as it was pasted.
        least: characters that are needed to learn from it, blanks at its ends not counted.
        most: characters that are kept.

    Raises:
        IntakeError: the text is too short.
    """
    text, n_dropped = cleaned(text)
    text, n_halves = SURROGATES.subn("", text)
    if len(text) < least:
        raise IntakeError(f"the text has {len(text):,} characters; to learn from it, at least {least:,} are needed")
    return CleanText(text[:most], n_dropped + n_halves, max(len(text) - most, 0))
