"""Opinions that a grammar writes: the same for the same seed, all different, well formed, and none of the card's."""

import re
from collections import Counter

import pytest

from transformer_core.recipes.everyday import ENGLISH_OPINIONS
from transformer_core.recipes.opinions import GRAMMAR, LEXICON, opinions
from transformer_core.training.examples import Example

COUNT = 12_000
SLOT = re.compile(r"\{(a:)?(\w+?)2?\}")


@pytest.fixture(scope="module")
def written() -> list[Example]:
    return opinions(COUNT, seed=0)


def test_the_same_seed_writes_the_same_and_another_seed_others(written) -> None:
    assert opinions(COUNT, seed=0) == written
    assert opinions(100, seed=0) == written[:100]
    assert opinions(100, seed=1) != written[:100]


def test_all_are_different_and_half_of_them_are_positive(written) -> None:
    assert len(written) == COUNT
    assert len({example.text.casefold() for example in written}) == COUNT
    assert Counter(example.label for example in written)[1] == pytest.approx(COUNT / 2, rel=0.05)


def test_none_is_a_sentence_that_cards_report_on(written) -> None:
    everyday = {re.sub(r"\W+", " ", text.casefold()).strip() for text, _ in ENGLISH_OPINIONS}
    assert not [example for example in written if re.sub(r"\W+", " ", example.text.casefold()).strip() in everyday]


def test_no_slot_is_left_open(written) -> None:
    assert not [example.text for example in written if re.search(r"[{}|]|\b[a-z]+_[a-z]+\b", example.text)]


def test_the_article_fits_the_word(written) -> None:
    found = [match.groups() for example in written for match in re.finditer(r"\b([Aa]n?) (\w[\w-]*)", example.text)]
    assert len(found) > 300
    silent_or_not = {"useful": "a", "useless": "a", "honest": "an", "hour": "an", "one": "a"}
    for article, word in found:
        expected = silent_or_not.get(word.lower(), "an" if word[0].lower() in "aeiou" else "a")
        assert article.lower() == expected, f"{article} {word}"


def test_every_slot_of_the_grammar_has_words() -> None:
    slots = {name for _, found in GRAMMAR for row in found for _, name in SLOT.findall(row.text)}
    assert slots <= LEXICON.keys()
    assert all(len(LEXICON[name]) > 1 for name in slots)
