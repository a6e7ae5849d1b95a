"""The texts of the recipes: sentences and words in assets/corpora/recipes, and what cards say, a file a language.

Nothing learns from the sentences that cards report on, and nothing is chosen by them: they were written before the
models that they measure were trained.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transformer_core.kept import PROJECT

CORPORA = PROJECT / "assets" / "corpora" / "recipes"
HEADING = re.compile(r"^\[([^\[\]\n]+)\]$", re.MULTILINE)
SIGNS = {"- ": 0, "+ ": 1}


def card_sentences(name: str, folder: Path = CORPORA) -> tuple[str, ...]:
    """Return the sentences of a file, one a line.

    Raises:
        ValueError: a line is blank, or blanks stand around it.
    """
    lines = (folder / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line or line != line.strip():
            raise ValueError(f"{name}, line {number}: {line!r} must be a sentence without blanks around it")
    return tuple(lines)


def signed(text: str, file: str) -> tuple[str, int]:
    """Return a text without the sign before it, and its label: 1 after "+ ", 0 after "- ".

    Raises:
        ValueError: it begins with neither; `file` is named.
    """
    if text[:2] not in SIGNS:
        raise ValueError(f"{file}: {text!r} must begin with one of {', '.join(map(repr, SIGNS))}")
    return text[2:], SIGNS[text[:2]]


def read_opinions(language: str) -> tuple[tuple[str, int], ...]:
    """Return the everyday opinions in a language, "en" or "zh", that cards report on, with their labels.

    Raises:
        ValueError: as card_sentences and signed.
    """
    name = f"opinions.{language}.txt"
    return tuple(signed(line, name) for line in card_sentences(name))


def read_sections(path: Path) -> dict[str, str]:
    """Return the texts of a file by the headings above them, which are lines such as [good].

    Raises:
        ValueError: a heading is there twice or has no text below it, or a text has no heading.
    """
    before, *parts = HEADING.split(path.read_text(encoding="utf-8"))
    if before.strip():
        raise ValueError(f"{path.name}: {before.strip()!r:.60} needs a heading such as [good] above it")
    texts: dict[str, str] = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        if name in texts:
            raise ValueError(f"{path.name}: [{name}] is there twice")
        if not text.strip():
            raise ValueError(f"{path.name}: [{name}] has no text below it")
        texts[name] = text.strip("\n")
    return texts


@cache
def card_texts(language: str) -> dict[str, str]:
    """Return all that cards say in a language, "en" or "zh", by name; values are put in where braces are."""
    return read_sections(Path(__file__).with_name(f"cards.{language}.md"))


def data_name(name: str, language: str) -> str:
    """Return the name of data in a language, as it is where cards.LANGUAGE.md has no other."""
    return card_texts(language).get(f"data.{name}", name)


@dataclass(frozen=True)
class Say:
    """What one card says.

    Args:
        language: of the card, "en" or "zh".
    """

    language: str

    def __call__(self, name: str, /, **values: object) -> str:
        """Return a text of the card's language with values put in.

        Raises:
            ValueError: the language has no text of this name.
        """
        if name not in card_texts(self.language):
            raise ValueError(f"cards.{self.language}.md has no [{name}]")
        return card_texts(self.language)[name].format(**values)

    def all_of(self, kinds: Sequence[str], part: str, /, **values: object) -> list[str]:
        """Return the texts of a part, such as "limits", that a model's kinds have, in the order of the kinds.

        Raises:
            ValueError: none has one.
        """
        names = [name for kind in kinds if (name := f"{kind}.{part}") in card_texts(self.language)]
        if not names:
            raise ValueError(f"cards.{self.language}.md has no [{kinds[-1]}.{part}]")
        return [self(name, **values) for name in names]
