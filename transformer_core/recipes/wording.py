"""The sentences of a card in each language: recipes hold them in English, zh.po holds the Chinese."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polib

CATALOGUE = Path(__file__).with_name("zh.po")


def template(text: str) -> str:
    """Return a template as it is.

    It marks one that say is given elsewhere, so that a test can hold every template against the catalogue.
    """
    return text


@cache
def chinese() -> dict[str, str]:
    """Return the Chinese of each English template."""
    return {entry.msgid: entry.msgstr for entry in polib.pofile(str(CATALOGUE))}


@dataclass(frozen=True)
class Say:
    """The sentences of one card.

    Args:
        language: of the card, "en" or "zh".
    """

    language: str

    def __call__(self, english: str, **values: object) -> str:
        """Return an English template in the language of the card, with values put in.

        Raises:
            KeyError: the catalogue has no Chinese for the template.
        """
        if self.language == "en":
            return english.format(**values)
        if english not in chinese():
            raise KeyError(f"{CATALOGUE.name} has no Chinese for {english!r}")
        return chinese()[english].format(**values)
