"""Cards in two languages, and stories with their quotation marks mended."""

import ast
from string import Formatter

import polib
import pytest

from tests.helpers import ROOT
from transformer_core.recipes.captions import MARKS, mended
from transformer_core.recipes.wording import CATALOGUE, Say, chinese, template

RECIPES = sorted((ROOT / "transformer_core" / "recipes").glob("*.py"))


def templates() -> set[str]:
    """Return every literal that the recipes give to say or template."""
    found = set()
    for path in RECIPES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("say", "template"):
                literal = node.args[0]
                if isinstance(literal, ast.Constant):
                    found.add(literal.value)
                else:
                    assert node.func.id == "say", f"{path.name}, line {node.lineno}: template needs a literal"
    return found


def places(text: str) -> list[tuple[str, str]]:
    """Return the places for values in a template, with how each value is written."""
    return sorted((name, spec or "") for _, name, spec, _ in Formatter().parse(text) if name is not None)


def test_every_template_has_its_chinese_and_none_is_stale() -> None:
    entries = [entry.msgid for entry in polib.pofile(str(CATALOGUE))]
    assert len(entries) == len(set(entries))
    assert len(entries) > 100
    assert set(entries) == templates()
    assert all(chinese().values())


def test_both_languages_write_the_same_values_in_the_same_way() -> None:
    differing = [english for english, own in chinese().items() if places(english) != places(own)]
    assert not differing


def test_a_template_is_said_in_the_language_of_the_card() -> None:
    assert template("{size} pairs") == "{size} pairs"
    assert Say("en")("{size} pairs", size=96) == "96 pairs"
    assert Say("zh")("{size} pairs", size=96) == "96 个句对"
    assert (
        Say("en")("{share:.1%} of a text that nobody translated", share=0.5) == "50.0% of a text that nobody translated"
    )


def test_a_template_without_its_chinese_is_named() -> None:
    with pytest.raises(KeyError, match=r"zh.po has no Chinese for 'a template that nobody translated \{count\}'"):
        Say("zh")("a template that nobody translated {count}", count=1)


@pytest.mark.parametrize(
    ("spoilt", "whole"),
    [
        ("â€œRun!â€ said Tom.", '"Run!" said Tom.'),
        ("Itâ€™s a bird.", "It's a bird."),
        ("â€˜Yesâ€™, she said.", "'Yes', she said."),
        ("a well-knownâ€“old dog", "a well-known-old dog"),
        ("They ranâ€”and fell.", "They ran - and fell."),
        ("And thenâ€¦", "And then..."),
        ("“It’s mine,” he said.", '"It\'s mine," he said.'),
    ],
)
def test_signs_that_were_decoded_in_the_wrong_alphabet_are_put_right(spoilt: str, whole: str) -> None:
    assert mended(spoilt) == whole


def test_every_sign_that_was_misread_is_known() -> None:
    """All quotation marks and dashes of which UTF-8 begins with the same two bytes, as Windows-1252 shows them."""
    for sign, whole in {"“": '"', "‘": "'", "’": "'", "–": "-", "—": " - ", "…": "..."}.items():
        spoilt = sign.encode().decode("windows-1252")
        assert mended(f"a{spoilt}b") == f"a{whole}b"
    assert set(MARKS.values()) == {'"', "'", "-", " - ", "..."}


def test_a_sound_text_stays_as_it_is() -> None:
    for text in ('"It is," said Ann - and left...', "à la carte, 20 € a day", "naïve café â la mode", ""):
        assert mended(text) == text
