"""Checks: what counts as text before any tokenizer sees it.
Source: the Unicode Standard, section 3.9 (surrogates have no UTF-8 form, which is what tokenizers read).
Read next: visible.py."""

from collections.abc import Iterable


def check_text(text: object, name: str) -> None:
    """Refuse what is not Unicode text; a lone surrogate has no UTF-8 form, so no tokenizer can read it.

    Args:
        text: The value to check.
        name: What to call it in the message.

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
