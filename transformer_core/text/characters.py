"""Characters: which strings count as text, and labels in which every character of a text can be seen.

Source: the Unicode Standard, sections 3.9 (surrogates have no UTF-8 form, which is what tokenizers read) and 4.5
(general categories); the marks are this project's choice.
"""

import unicodedata
from collections.abc import Iterable

MARKS = {" ": "␣", "\n": "⏎", "\t": "⇥"}
JOINERS = "\u200c\u200d"  # they join two characters (emoji families, Persian), so between two they stay
BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")  # printable by their category, but without any ink
DOTTED_CIRCLE = "\u25cc"


def check_text(text: object, name: str) -> None:
    """Raise ValueError for anything but Unicode text; no tokenizer can read a lone surrogate.

    Args:
        text: The value to check.
        name: Its name in the message.

    Raises:
        ValueError: The value is no str, or holds a lone surrogate.
    """
    if not isinstance(text, str):
        raise ValueError(f"{name}={text!r:.80} must be a str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        char = ascii(text[error.start])
        raise ValueError(
            f"{name} must be valid Unicode: character {error.start} is the lone surrogate {char}"
        ) from None


def check_texts(texts: Iterable[str], name: str) -> list[str]:
    """Return the texts as a list; ValueError where they are one str, or `check_text` refuses one of them."""
    if isinstance(texts, str):
        raise ValueError(f"{name}={texts!r:.80} must be several str, not one")
    texts = list(texts)
    for place, text in enumerate(texts):
        check_text(text, f"{name}[{place}]")
    return texts


def visible(text: str) -> str:
    r"""Return a label of a text in which every character can be seen.

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
    if text.isalnum() and BLANK.isdisjoint(text):
        return text
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
