"""English and Chinese say the same things: the same keys, the same sections, the same places for values."""

import re
from pathlib import Path

import polib
import pytest

from pages.ui.language import ASSETS, LANGUAGES, prose, words
from transformer_core.sites import SITES

PAGES = sorted(path.parent.name for path in (ASSETS / "words").glob("*/en.md"))
SOURCES = [path for path in (ASSETS.parent / "pages").glob("**/*.py") if "figures" not in str(path)]


def places(text: str) -> set[str]:
    """Return the names in curly brackets."""
    return set(re.findall(r"{(\w+)}", text))


def test_both_languages_have_the_same_keys_with_the_same_places() -> None:
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    for key, word in english.items():
        assert word.strip(), f"{key} is empty in English"
        assert chinese[key].strip(), f"{key} is empty in Chinese"
        assert places(word) == places(chinese[key]), f"{key} has other places in Chinese"


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_sections(page: str) -> None:
    english, chinese = prose("en", page), prose("zh", page)
    assert english.keys() == chinese.keys()
    for name in english:
        assert english[name], f"{page}: {name} is empty in English"
        assert chinese[name], f"{page}: {name} is empty in Chinese"
        assert places(english[name]) == places(chinese[name])


def test_every_language_has_every_page() -> None:
    for language in LANGUAGES:
        assert sorted(path.parent.name for path in (ASSETS / "words").glob(f"*/{language}.md")) == PAGES


def test_meanings_of_sites_are_those_of_the_table() -> None:
    for leaf, site in SITES.items():
        assert words("en")[f"site.{leaf}"] == site.meaning


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_key_that_a_page_asks_for_is_there(path: Path) -> None:
    asked = set(re.findall(r"""\bt\(\s*"([\w.]+)["]""", path.read_text(encoding="utf-8")))
    assert asked <= words("en").keys()


def test_every_key_is_asked_for_somewhere() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    built = tuple(re.findall(r"""f["']((?:[a-z_]+\.)+[a-z_]*){""", text))
    built += tuple(f"{prefix}." for prefix in re.findall(r'strings\("(\w+)"[,)]', text))
    for name in re.findall(r'(?:model|parts)_page\(\s*"(\w+)"', text):
        built += (f"{name}.heading", f"{name}.part")
    unused = {key for key in words("en") if f'"{key}"' not in text and not key.startswith(built)}
    assert not unused


def test_a_key_stands_in_one_file() -> None:
    for language in LANGUAGES:
        files = sorted((ASSETS / "words").glob(f"*/{language}.po"))
        keys = [entry.msgid for path in files for entry in polib.pofile(str(path))]
        assert len(keys) == len(set(keys))
        assert {path.parent for path in files} == {path.parent for path in (ASSETS / "words").glob("*/en.po")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_counted_from_1(language: str) -> None:
    said = [text for page in PAGES for text in prose(language, page).values()] + list(words(language).values())
    numbered = r"\b(?:layers?|heads?|positions?|dimensions?) (?:one|1)\b(?!\.\d)|(?:层|头|位置|维度) ?1(?=[的，。、）])"
    from_1 = re.compile(numbered + "|counted from 1|从 1 数起|第 {layer} 层", re.IGNORECASE)
    assert not [text for text in said if from_1.search(text)]
    assert "encoder.layer0" in prose(language, "home")["why"]
