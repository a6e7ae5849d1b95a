"""The interface's words in English and Chinese, and the prose of each page."""

import re
import unicodedata
from functools import lru_cache
from string import Formatter
from typing import Any

import polib
import streamlit as st

from pages.link import linked
from transformer_core.kept import PROJECT
from transformer_core.recipes.texts import data_name

ASSETS = PROJECT / "assets"
MOST_READ = 2_000  # characters of a text, to tell its language
WORD_JOINER = "\u2060"
LANGUAGES = {"en": "English", "zh": "中文"}


BELOW_ZERO = re.compile(r"(\**)-((?:\d[\d,]*\.\d+ ?%?|\d+ ?%)\**)")  # no token of a text, such as -5


def with_minus(written: str) -> str:
    """Return a number below zero with a minus sign in the place of its hyphen; any other text as it is."""
    number = BELOW_ZERO.fullmatch(written)
    return f"{number[1]}−{number[2]}" if number else written


class _Counting(Formatter):
    """Writes ``{count:token|tokens}`` as the first form where the count is 1, else as the second; -0.5 as −0.5."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, more_forms, many = format_spec.partition("|")
        if more_forms:
            return one if value in (1, "1") else many
        return with_minus(super().format_field(value, format_spec))


_COUNTING = _Counting()


class Word(str):
    """A text for the screen, in which ``{count} {count:token|tokens}`` is "1 token" or "2 tokens"."""

    __slots__ = ()

    def format(self, *args: object, **kwargs: object) -> str:
        """Return the text with its places filled in; kit.js does the same in the browser."""
        return _COUNTING.vformat(self, args, kwargs)


@lru_cache(maxsize=len(LANGUAGES))
def words(language: str) -> dict[str, str]:
    """Return the interface's words of one language, by key; a page's words lie in a file of their own."""
    files = sorted((ASSETS / "words").glob(f"*/{language}.po"))
    return {entry.msgid: Word(entry.msgstr) for path in files for entry in polib.pofile(str(path))}


@lru_cache(maxsize=64)
def prose(language: str, page: str) -> dict[str, str]:
    """Return the sections of one page's prose, by name; a section opens with a line ``<!-- name -->``."""
    text = (ASSETS / "words" / page / f"{language}.md").read_text(encoding="utf-8")
    sections = {}
    for part in text.split("<!-- ")[1:]:
        name, _, body = part.partition(" -->")
        sections[name] = Word(body.strip())
    return sections


@lru_cache(maxsize=8)
def stylesheet(name: str) -> str:
    """Return the style that lies in assets/NAME.css."""
    return (ASSETS / f"{name}.css").read_text(encoding="utf-8")


def language() -> str:
    """Return the language chosen: by the control, else before on another page, else in the URL, else the browser's."""
    link = linked()
    if link is not None:
        asked = link.said.get("lang", "")
        return asked if asked in LANGUAGES else "en"
    state = st.session_state
    chosen = state.get(f"lang@{state.get('page')}") or state.get("kept", {}).get("lang") or st.query_params.get("lang")
    if chosen in LANGUAGES:
        return chosen
    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def language_of(text: str) -> str | None:
    """Return the language that a text's letters are of, "en" for Latin ones and "zh" for Chinese; None for others.

    A long text is of the language that it begins in.
    """
    beginning = text[:MOST_READ]
    letters = [unicodedata.name(letter, "").partition(" ")[0] for letter in beginning if letter.isalpha()]
    scripts = {"zh": letters.count("CJK"), "en": letters.count("LATIN")}
    most = max(scripts, key=scripts.__getitem__)
    return most if 2 * scripts[most] > len(letters) else None


def is_foreign(text: str, reads: str) -> bool:
    """Tell whether a text is of another language than a model reads; not where its language or the model's is open."""
    return bool(reads) and language_of(text) not in (None, reads)


def pieces_of(text: str) -> dict[str, str]:
    """Return what the pieces of a text are called, one and several: characters where it is Chinese, else words."""
    piece = "character" if language_of(text) == "zh" else "word"
    return {"piece": t(f"piece.{piece}"), "pieces": t(f"piece.{piece}s")}


def t(key: str, **values: object) -> str:
    """Return the word for a key in the language chosen, with values put in."""
    word = words(language())[key]
    return word.format(**values) if values else word


def corpus_word(name: str) -> str:
    """Return the name of a corpus for Markdown, in the language chosen where the recipes' cards have it."""
    return plain(data_name(name, language()))


def joined(*sentences: str) -> str:
    """Return sentences one after the other, empty ones left out; in Chinese no space stands between them."""
    return ("" if language() == "zh" else " ").join(filter(None, sentences))


def plain(text: str) -> str:
    """Return text that Markdown shows as it is: no picture, no colour, and no link, not even of a bare address.

    An address is found after escapes are undone; a word joiner, which has no width, is put in so that it is not.
    """
    unlinked = re.sub(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", WORD_JOINER, text, flags=re.IGNORECASE)
    return re.sub(r"([\\`*_{}\[\]()#!|<>~$:&])", r"\\\1", unlinked)


def section(page: str, name: str) -> str:
    """Return a section of a page's prose in the language chosen."""
    return prose(language(), page)[name]


def strings(prefix: str, lang: str | None = None) -> dict[str, str]:
    """Return all words whose keys start with ``prefix.``, without that prefix; in the language chosen or `lang`."""
    return dict(_words_under(f"{prefix}.", lang or language()))


@lru_cache(maxsize=256)
def _words_under(start: str, language: str) -> dict[str, str]:
    return {key.removeprefix(start): word for key, word in words(language).items() if key.startswith(start)}


MARKED = re.compile(r"(\*\*[^*\n]+\*\*|`[^`\n]+`)")
RULE = re.compile(r"\s*:?-+:?\s*")


def _marked(part: str) -> str:
    return part if part.startswith("`") else f"**{plain(part[2:-2].strip())}**"


def _inline(text: str) -> str:
    parts = MARKED.split(text)  # every second part is bold or code
    return "".join(_marked(part) if odd % 2 else plain(part) for odd, part in enumerate(parts))


def _cell(cell: str) -> str:
    return cell.strip() if RULE.fullmatch(cell) else _inline(cell.strip())


def safe_line(line: str) -> str:
    """Return one line of Markdown that keeps headings, lists, tables, bold and code; all else is plain text."""
    line = line.strip()
    if line.startswith("|"):
        return f"| {' | '.join(_cell(cell) for cell in line.strip('|').split('|'))} |"
    if heading := re.fullmatch(r"#{1,6}\s+(.+)", line):
        return f"\n**{plain(heading[1])}**\n"
    return f"- {_inline(line[2:])}" if line.startswith(("- ", "* ")) else _inline(line)


def safe_text(text: str) -> str:
    """Return Markdown of which safe_line keeps what it keeps, line by line."""
    return "\n".join(map(safe_line, text.splitlines()))
