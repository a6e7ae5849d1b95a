"""The corpora: what is held out never occurs in training, labels are balanced, sentences are right."""

import copy
import json
import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.text import Tokenizer
from transformer_core.training.baselines import bag_of_words
from transformer_core.training.corpora import answer, facts, passage, reviews, sequences, written_reviews
from transformer_core.training.corpora import grammar as grammars
from transformer_core.training.corpora.grammar import CONSTRUCTIONS, CORPORA, SLOT, TURNING, load_grammar, parse_grammar
from transformer_core.training.corpora.pairs import translation_pairs
from transformer_core.training.corpora.reviews import frame_of, in_place, write_review

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


@pytest.mark.nightly
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


LANGUAGES = ["en", "zh"]


def content_of(language):
    return json.loads((CORPORA / "reviews" / f"{language}.json").read_text(encoding="utf-8"))


def all_frames(grammar, text, part):
    """Yield every frame that a template can take on in a part."""
    match = next((m for m in SLOT.finditer(text) if m["name"] in grammar.clauses), None)
    if match is None:
        yield frame_of(text)
        return
    options = grammar.clauses[match["name"]]
    for clause in options.train + (options.held_out if part == "held_out" else ()):
        yield from all_frames(grammar, text[: match.start()] + in_place(clause, match, 10) + text[match.end() :], part)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_frame_that_can_be_written_is_in_both_parts(language):
    grammar = load_grammar(language)
    train, held_out = (
        {
            frame
            for ps in grammar.templates.values()
            for text in ps.of(part)
            for frame in all_frames(grammar, text, part)
        }
        for part in ("train", "held_out")
    )
    assert not train & held_out
    assert len(train) > 1_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_frames_are_made_of_words_of_training_frames(language):
    grammar = load_grammar(language)
    pattern = r"\w+" if language == "en" else r"\w"
    sections = [*grammar.templates.values(), *grammar.clauses.values()]
    train, held_out = (
        {word for parts in sections for text in parts.of(part) for word in re.findall(pattern, SLOT.sub(" ", text))}
        for part in ("train", "held_out")
    )
    assert held_out <= train


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_template_fits_both_labels_in_every_domain(language):
    grammar = load_grammar(language)
    for construction in grammar.templates:
        for label in (0, 1):
            rng = Random(label)
            drawn = [write_review(grammar, construction, "held_out", label, rng) for _ in range(300)]
            signed = {polarity for review in drawn for _, _, polarity in review.words}
            assert {0, 1, None} >= signed
            assert label in signed


def test_a_clause_that_is_contradicted_has_its_signs_turned_round():
    slot = SLOT.search("although {-detail}, {+final}")
    assert slot is not None
    assert in_place("its {thing} is {+adj}, not {-adj}", slot, 10) == "its {thing} is {-adj10}, not {+adj10}"


def test_the_frame_covers_words_signs_and_punctuation():
    assert frame_of("Not {-adj}, but {+adj2}: the {thing}!") == "not <adj> but <adj> the <thing>"


def test_each_word_of_opinion_is_withheld_from_one_construction_and_all_share_equally():
    withheld = load_grammar("en").withheld
    counts = [list(withheld.values()).count(construction) for construction in grammars.TURNING]
    assert max(counts) - min(counts) <= 2


def broken(change):
    content = copy.deepcopy(content_of("en"))
    change(content)
    return content


def add_open_slot(content):
    content["templates"]["plain"]["train"].append("the {nonsense} was {+adj}.")


def share_a_template(content):
    content["templates"]["irony"]["held_out"].append(content["templates"]["irony"]["train"][0])


def shorten_a_list(content):
    content["opinions"]["did"]["positive"] = ["impressed me", "delighted me"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (add_open_slot, r"plain: 'the \{nonsense\} was \{\+adj\}\.' has the slot \{nonsense\}, which no list"),
        (share_a_template, "irony: .* is both for training and held out"),
        (shorten_a_list, r"list 'did' leaves \d words for \w+ in training; 3 are needed"),
    ],
)
def test_a_file_that_contradicts_itself_gets_words(change, words):
    with pytest.raises(ValueError, match=words):
        parse_grammar(broken(change))


@pytest.fixture(scope="module", params=["fr", "zh"])
def corpus(request: pytest.FixtureRequest) -> tuple[str, list[tuple[str, str]], list[tuple[str, str]]]:
    return request.param, *translation_pairs(request.param, train=6_000, held_out=300, seed=1)


def test_sentences_differ_and_come_again_with_their_seed(corpus) -> None:
    into, train, held_out = corpus
    sources = [source for source, _ in (*train, *held_out)]
    assert len(set(sources)) == len(sources) == 6_300
    assert translation_pairs(into, train=6_000, held_out=300, seed=1) == (train, held_out)
    assert translation_pairs(into, train=10, held_out=0, seed=2)[0] != train[:10]
    known = {word for source, target in train for word in f"{source} {target if into == 'fr' else ''}".split()}
    assert {word for source, _ in held_out for word in source.split()} <= known


def test_french_agrees_and_puts_most_adjectives_behind_the_noun() -> None:
    pairs = dict(translation_pairs("fr", train=12_000, held_out=0)[0])
    found = " | ".join(pairs.values())
    for right in (
        "une voiture rouge",
        "un petit chien",
        "la petite vache",
        "l'enfant",
        "une vieille maison",
        "n'aime pas",
    ):
        assert right in found
    for wrong in ("une rouge voiture", "le enfant", "la voiture vert ", "ne aime", "un vieille", "beau oiseau"):
        assert wrong not in found
    negated = [(source, target) for source, target in pairs.items() if "does not" in source]
    assert all(" pas " in target and (" ne " in target or " n'" in target) for _, target in negated)
    assert not any(" pas " in target for source, target in pairs.items() if "does not" not in source)


def test_chinese_has_measure_words_and_the_place_before_the_verb() -> None:
    pairs = dict(translation_pairs("zh", train=12_000, held_out=0)[0])
    for source, target in pairs.items():
        if source.startswith("a dog is running in the park"):
            assert target == "一只狗在公园里跑"
        assert " " not in target
    assert any("一匹" in target for target in pairs.values())
    assert not any("一只马" in target or "在在" in target for target in pairs.values())


def test_numbers_outside_what_there_is_are_refused() -> None:
    with pytest.raises(ValueError, match=r"train=-1 and held_out=0 must be at least 0"):
        translation_pairs("fr", train=-1, held_out=0)


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
def test_sequences_that_cannot_be_get_words(change, words):
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
