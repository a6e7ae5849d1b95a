"""Sequences of letters keep their rule and their held-out part apart; the passage is long enough and stays the same."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.training.corpora import answer, passage, sequences

RULES = ["copy", "reverse", "sort"]
LETTERS = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1, max_size=24)


@given(LETTERS)
def test_answers_are_what_their_rules_say(letters):
    source = " ".join(letters)
    assert answer("copy", source) == source
    assert answer("reverse", source).split() == letters[::-1]
    assert answer("sort", source).split() == sorted(letters)


@pytest.mark.parametrize("rule", RULES)
def test_sources_differ_and_are_made_as_asked(rule):
    train, held_out = sequences(rule, symbols=5, length=6, train=500, held_out=200, seed=3)
    sources = [source for source, _ in train + held_out]
    assert (len(train), len(held_out), len(set(sources))) == (500, 200, 700)
    assert {letter for source in sources for letter in source.split()} == set("abcde")
    assert {len(source.split()) for source in sources} == set(range(2, 7))
    assert all(target == answer(rule, source) for source, target in train + held_out)


def test_lengths_are_about_equally_frequent_where_there_are_enough_sequences():
    train, held_out = sequences("sort", symbols=12, length=10, train=4_000, held_out=600)
    counts = Counter(len(source.split()) for source, _ in train + held_out)
    assert counts[2] == 144
    assert max(counts[size] - counts[other] for size in range(3, 11) for other in range(3, 11)) <= 1


def test_the_seed_fixes_the_pairs_and_another_gives_others():
    first, again, other = (
        sequences("copy", symbols=8, length=9, train=50, held_out=9, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other


def test_every_sequence_there_is_can_be_asked_for():
    train, held_out = sequences("copy", symbols=2, length=3, train=8, held_out=4)
    assert len({source for source, _ in train + held_out}) == 12


def test_long_sequences_of_all_letters_can_be_drawn():
    train, _ = sequences("reverse", symbols=26, length=24, train=100, held_out=0)
    assert max(len(source.split()) for source, _ in train) == 24


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rule": "shuffle"}, "rule='shuffle' is unknown"),
        ({"symbols": 27}, "symbols=27 must be at least 2 and at most 26"),
        ({"length": 1}, "length=1 must be at least 2"),
        ({"train": -1}, "train=-1 must be at least 0"),
        ({"symbols": 2, "length": 3}, "together are 30; symbols=2 and length=3 allow only 12 different"),
    ],
)
def test_bad_input_gets_words(change, words):
    with pytest.raises(ValueError, match=words):
        sequences(**{"rule": "copy", "symbols": 9, "length": 9, "train": 20, "held_out": 10, **change})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_passage_is_long_and_has_only_the_language_it_is_in(language):
    text = passage(language)
    assert len(text) >= 8_000
    assert text == passage(language)
    assert any("\u4e00" <= char <= "\u9fff" for char in text) == (language == "zh")
    assert any("a" <= char <= "z" for char in text) == (language == "en")


def test_a_language_without_a_passage_gets_words():
    with pytest.raises(ValueError, match="language='fr' is unknown"):
        passage("fr")
