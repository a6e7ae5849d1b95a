"""What the library refuses, in the page's language: its messages are English, and those met most have other words, too.

The English words are the library's own messages, with the names of what stands in them; a test finds each in its code.
"""

import re
from functools import lru_cache

from pages.language import language, strings

VALUE = re.compile(r"\{(\w+)\}")


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
