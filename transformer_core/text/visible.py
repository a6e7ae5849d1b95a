"""Visible text: a label in which no character is lost to the eye, be it a space, a newline or a bidirectional override.
Source: the general categories of the Unicode Standard, section 4.5; the marks are this project's choice.
Read next: lexicon.py."""

import unicodedata

MARKS = {" ": "␣", "\n": "⏎", "\t": "⇥"}
JOINERS = "\u200c\u200d"  # they shape their neighbours (emoji families, Persian), so between two neighbours they stay
BLANK = "\u034f\u115f\u1160\u2800\u3164\uffa0"  # Unicode calls them printable, and yet they print nothing
DOTTED_CIRCLE = "\u25cc"


def visible(text: str) -> str:
    r"""Write text so that every character of it can be seen.

    Space, newline and tab become ␣, ⏎ and ⇥. Other characters without ink become their code point (`<U+200B>`). A
    combining mark with nothing before it is set on a dotted circle.

    Args:
        text: Any text.

    Returns:
        The label; text itself where every character already shows. The empty text becomes `<empty>`.
    """
    if not text:
        return "<empty>"
    if text.isascii() and text.isprintable():
        return text.replace(" ", MARKS[" "])
    return "".join(_visible_at(text, position) for position in range(len(text)))


def _visible_at(text: str, position: int) -> str:
    char = text[position]
    if char in MARKS:
        return MARKS[char]
    if char in JOINERS and 0 < position < len(text) - 1:
        return char
    bare = position == 0 or text[position - 1] in MARKS
    if not char.isprintable() or char in BLANK or (bare and _is_variation_selector(char)):
        return f"<U+{ord(char):04X}>"
    if bare and unicodedata.category(char).startswith("M"):
        return DOTTED_CIRCLE + char
    return char


def _is_variation_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
