"""What cannot be read: the last text stays on the page, pale, and a line says why, in the page's language.

The library's messages are English; those met most have other words, too. The English ones are its own, with the
names of what stands in them; a test finds each in its code.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from html import escape
from typing import TypeVar

import streamlit as st

from pages.language import language, strings, stylesheet, t

VALUE = re.compile(r"\{(\w+)\}")
T = TypeVar("T")
MOST_SHOWN = 60


@lru_cache(maxsize=1)
def _messages() -> dict[str, re.Pattern[str]]:
    """Return what finds each message and the values in it, by key, those with the most words of their own first."""
    messages = strings("refused", "en")
    keys = sorted(messages, key=lambda key: -len(VALUE.sub("", messages[key])))
    parts = {key: VALUE.split(messages[key]) for key in keys}  # every second part is the name of a value
    patterns = {
        key: "".join(f"(?P<{part}>.*?)" if place % 2 else re.escape(part) for place, part in enumerate(found))
        for key, found in parts.items()
    }
    return {key: re.compile(pattern, re.DOTALL) for key, pattern in patterns.items()}


def in_own_words(message: str) -> str:
    """Return a message of the library in the page's language, as it is where there are no other words for it."""
    if language() == "en":
        return message
    for key, pattern in _messages().items():
        if found := pattern.fullmatch(message):
            return strings("refused")[key].format(**found.groupdict())
    return message


def read_or_last(name: str, text: str, example: str, read: Callable[[str], T]) -> tuple[T, str | None]:
    """Read a text; where it cannot be read, the last text of this visit that could, or else the example.

    Args:
        name: of the text's box.
        read: raises ValueError with the reason in words for the page.

    Returns:
        What `read` made, and where that is of another text, what to say about it.

    Raises:
        ValueError: neither the text nor the others can be read; with the text's reason.
    """
    last: dict[str, str] = st.session_state.setdefault("last_read", {})
    try:
        found = read(text)
    except ValueError as error:
        reason = error
    else:
        last[name] = text
        return found, None
    for key, other in (("text.still", last.get(name)), ("text.instead", example)):
        if other is not None and other != text:
            try:
                found = read(other)
            except ValueError:
                continue
            return found, t(key, reason=str(reason), text=_shortened(other))
    raise reason


def last_read(name: str) -> str | None:
    """Return the last text of a box that could be read in this visit, if any."""
    return st.session_state.get("last_read", {}).get(name)


def read_and_note(name: str, text: str, example: str, read: Callable[[str], T]) -> T | None:
    """Read the text of a part's own box as read_or_last does, and say in a line where it shows another one.

    Returns:
        What `read` made; None where neither text can be read, with the reason on the page.
    """
    try:
        found, instead = read_or_last(name, text, example, read)
    except ValueError as error:
        show_line(str(error))
        return None
    show_line(instead, pale=instead is not None)
    return found


def require_length(text: str, most: int) -> None:
    """Refuse a text that is too long.

    Raises:
        ValueError: it has more characters than that; in words for the page.
    """
    if len(text) > most:
        raise ValueError(t("text.too_long", count=f"{len(text):,}", most=f"{most:,}"))


@contextmanager
def in_words() -> Iterator[None]:
    """Say in words for the page what the library says of a text that it cannot read.

    Raises:
        ValueError: with those words.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(t("text.unreadable", error=str(error))) from error


def show_line(*notes: str | None, pale: bool = False, loud: bool = False) -> None:
    """Show notes about a text in one line, whose height is kept where there is nothing to say.

    What does not fit is shown whole under the pointer or at a tap; the page stays where it is.

    Args:
        notes: in plain words; None is left out.
        pale: the picture is of another text than the one in the box; what follows in the same container turns pale.
        loud: what the model says of the text means little, so that the line stands out.
    """
    said = " · ".join(_known(notes))
    state = ' data-pale="true"' if pale else ' data-loud="true"' if loud else ""
    line = f'<div class="text-line" tabindex="0" role="status"{state}><span>{escape(said) or "&nbsp;"}</span></div>'
    st.html(f"{line}<style>{stylesheet('app_pale')}</style>" if pale else line)


def _known(notes: Iterable[str | None]) -> list[str]:
    return [note for note in notes if note]


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]}…"
