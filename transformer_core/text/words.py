"""Words of an encoded text: which tokens are parts of one word, so that people can be shown words and not pieces.

Read next: batch.py."""

import re
from dataclasses import dataclass

from transformer_core.text.encoding import Encoding

# letters and digits, an apostrophe between them; signs from CJK on stand by themselves, for no blank parts their words
WORD = re.compile(r"[^\W_\u2e80-\U0010ffff]+(?:['’][^\W_\u2e80-\U0010ffff]+)*")


@dataclass(frozen=True)
class Word:
    """A word of a text, or a sign that is none: the tokens that it became.

    Args:
        start, end: in characters of the text.
        places: positions of its tokens, in order.
        unknown: whether the vocabulary lacks a part of it.
    """

    start: int
    end: int
    places: tuple[int, ...]
    unknown: bool


def words_of(encoding: Encoding) -> tuple[Word, ...]:
    """Return the words of an encoding's first text, in order; special tokens and blanks are no words.

    Tokens that share a character, as bytes of one sign do, are one word.
    """
    spans = [match.span() for match in WORD.finditer(encoding.text)]
    around = {place: span for span in spans for place in range(*span)}
    found: list[tuple[int, int, list[int]]] = []
    for place, (start, end) in enumerate(encoding.offsets):
        surface = encoding.text[start:end]
        if encoding.special[place] or encoding.segment_ids[place] or not surface.strip():
            continue
        start += len(surface) - len(surface.lstrip())
        end -= len(surface) - len(surface.rstrip())
        start, end = around.get(start, (start, end))
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]), [*found[-1][2], place])
        else:
            found.append((start, end, [place]))
    return tuple(
        Word(start, end, tuple(places), any(encoding.unknown[place] for place in places))
        for start, end, places in found
    )
