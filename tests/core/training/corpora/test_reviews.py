"""Reviews: what is held out never occurs in training, nothing but the order of words tells the label."""

from collections import Counter

import pytest

from transformer_core.text import Tokenizer
from transformer_core.training.baselines import bag_of_words
from transformer_core.training.corpora import facts, reviews, written_reviews
from transformer_core.training.corpora.grammar import CONSTRUCTIONS, TURNING, load_grammar

TRAIN, HELD_OUT = 4_000, 800


@pytest.fixture(scope="module", params=["en", "zh"])
def language(request):
    return request.param


@pytest.fixture(scope="module")
def parts(language):
    return written_reviews(language, train=TRAIN, held_out=HELD_OUT, seed=5)


def test_the_seed_fixes_the_reviews_and_another_gives_others(language):
    first, again, other = (reviews(language, train=30, held_out=20, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert not {e.text for e in first[0]} & {e.text for e in other[0]}


def test_all_texts_differ(parts):
    texts = [review.text for part in parts for review in part]
    assert len(set(texts)) == len(texts) == TRAIN + HELD_OUT


def test_twenty_thousand_reviews_and_more_can_be_written(language):
    train, held_out = reviews(language, train=20_000, held_out=2_000)
    assert len({example.text for example in train + held_out}) == 22_000


def test_no_frame_is_shared(parts):
    train, held_out = ({review.frame for review in part} for part in parts)
    assert not train & held_out
    assert len(train) > 500
    assert len(held_out) > 100


def test_a_word_never_meets_the_construction_it_is_withheld_from_in_training(language, parts):
    withheld = load_grammar(language).withheld
    pairs = [{(word, review.construction) for review in part for word, _, _ in review.words} for part in parts]
    new = {(word, construction) for word, construction in pairs[1] if withheld.get(word) == construction}
    assert not pairs[0] & set(withheld.items())
    assert not pairs[0] & new
    assert {construction for _, construction in new} == set(TURNING)
    assert len(new) > 0.6 * len(withheld)


def test_every_word_of_opinion_is_known_from_training(language, parts):
    assert set(load_grammar(language).withheld) <= {word for review in parts[0] for word, _, _ in review.words}


def test_unseen_nouns_occur_in_no_training_text(language, parts):
    lists = load_grammar(language).lists.values()
    unseen = {word for words in lists for entry in words.values() for word in entry.unseen}
    space = " " if language == "en" else ""
    texts = ["".join(c if c.isalnum() else space for c in f" {r.text.lower()} ") for r in parts[0]]
    assert not [word for word in unseen if any(f"{space}{word}{space}" in text for text in texts)]
    used = unseen & {word for review in parts[1] for word, _, _ in review.words}
    assert len(used) > 0.9 * len(unseen)


def test_sentences_beside_the_review_are_held_out_too(language, parts):
    asides = load_grammar(language).asides
    for part, absent in ((parts[0], asides.held_out), (parts[1], asides.train)):
        assert not [review for review in part if any(aside in review.text for aside in absent)]


def test_labels_are_balanced_in_every_construction_and_half_the_reviews_are_plain(parts):
    for part in parts:
        counts = Counter((review.construction, review.label) for review in part)
        assert counts["plain", 0] == counts["plain", 1] == len(part) / 4
        assert all(counts[construction, 0] == counts[construction, 1] for construction in CONSTRUCTIONS)
        assert len({counts[construction, 0] for construction in TURNING}) == 1


def test_no_slot_is_left_open_and_sentences_begin_with_a_capital(parts):
    for review in parts[0] + parts[1]:
        assert not set(review.text) & set("{}<>")
        assert "(n)" not in review.text
        assert review.text[0] == review.text[0].upper()


def test_articles_fit_the_word_that_follows():
    texts = " ".join(example.text.lower() for example in reviews("en", train=3_000, held_out=0)[0])
    assert " an awful " in texts
    assert " a useful " in texts
    assert " a awful " not in texts
    assert " an useful " not in texts


def test_counting_words_falls_short(language, parts):
    train, held_out = ([review.example for review in part] for part in parts)
    tokenizer = Tokenizer.train("word", [example.text for example in train], lowercase=True)
    accuracy = bag_of_words(train, held_out, tokenizer, n_classes=2)
    assert 0.5 < accuracy < 0.8


def test_facts_count_what_the_files_hold(language):
    counted = facts(language)
    assert counted["held_out_templates"] > 40
    assert counted["train_templates"] > 150
    assert counted["opinion_words"] > 150
    assert counted["unseen_nouns"] >= 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fr", 1, 1), "language='fr' is unknown; it must be one of 'en', 'zh'"),
        (("en", -1, 1), "train=-1 must be at least 0"),
        (("en", 1, -2), "held_out=-2 must be at least 0"),
    ],
)
def test_bad_input_gets_words(arguments, words):
    language, train, held_out = arguments
    with pytest.raises(ValueError, match=words):
        reviews(language, train=train, held_out=held_out)
