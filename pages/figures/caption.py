"""What a picture is of, as lines that stand in its file: texts of strangers made safe, shortened and broken."""

import unicodedata
from collections.abc import Sequence

MOST = 80  # columns of a shortened text; a Chinese character takes two
JOINERS = "\u200c\u200d"  # of emoji and of scripts that need them


def columns_of(text: str) -> int:
    """Return how many columns of a monospaced font a text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def one_line(text: str, most: int = MOST) -> str:
    """Return a text on one line, shortened, without signs that cannot be seen: they could turn the rest around."""
    start = text[: 8 * most]  # a text may be very long
    seen = "".join(letter if letter in JOINERS or unicodedata.category(letter)[0] != "C" else " " for letter in start)
    words = " ".join(seen.split())
    if columns_of(words) <= most and len(text) == len(start):
        return words
    while columns_of(words) > most - 1:
        words = words[: min(len(words) - 1, most - 1)]
    return f"{words.rstrip()}…"


def folded(lines: Sequence[str], most: int) -> list[str]:
    """Return lines of which none is longer than `most` columns, broken at blanks where there are any."""
    found = []
    for line in lines:
        while columns_of(line) > most:
            end = next(end for end in range(len(line), 0, -1) if columns_of(line[:end]) <= most)
            end = blank if (blank := line.rfind(" ", 0, end + 1)) > end // 2 else end
            found.append(line[:end].rstrip())
            line = line[end:].lstrip()
        found.append(line)
    return found
