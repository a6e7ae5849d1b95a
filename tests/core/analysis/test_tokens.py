"""A step of byte-pair encoding, and one sentence by every tokenizer."""

from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest

from tests.helpers import nightly_but, refusals
from tests.helpers.engine import shipped
from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.words.bpe_merges import MOST_CHARACTERS, learnable, merge_step
from transformer_core.analysis.words.tokenizer_comparison import (
    Cut,
    Cuts,
    corpus_text,
    cut,
    cut_sentence,
    learned_tokenizer,
)
from transformer_core.text.merges import ALPHABETS, join, learn_merges, spell, split_words

BUNDLE = shipped("sentiment")
SENTENCE = "The story was dull, 这部电影很无聊 👍 the end."
CHOICE = {"corpus": "both", "pasted": "", "alphabet": "characters", "merges": 300, "step": 120, "text": SENTENCE}


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("step", nightly_but([0, 1, 2, 37], [0, 37]))
def test_rivals_are_the_most_frequent_pairs_of_that_moment(alphabet: str, step: int) -> None:
    found = merge_step(**CHOICE | {"alphabet": alphabet, "step": step, "corpus": "zh"})
    words = Counter(word for word, _ in split_words(corpus_text("zh")))
    lines = {word: spell(word, alphabet) for word in words}
    for merge in islice(learn_merges(words, alphabet=alphabet), max(step - 1, 0)):
        lines = {word: join(line, merge.pair) for word, line in lines.items()}
    counts = Counter[tuple[str, str]]()
    for word, line in lines.items():
        for pair in pairwise(line):
            counts[pair] += words[word]
    assert found.rival_counts == tuple(count for _, count in counts.most_common(10))
    assert found.rival_counts[0] == found.counts[max(step - 1, 0)]
    if step:
        assert found.rivals[0] == f"{found.lefts[step - 1]} + {found.rights[step - 1]}"


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_sentence_closes_up_and_its_places_lead_back(alphabet: str) -> None:
    for step in (0, 5, 120, 300):
        found = merge_step(**CHOICE | {"alphabet": alphabet, "step": step})
        assert found.sentence_tokens[step] == len(found.labels)
        assert bytes.fromhex("".join(found.spelled)).decode() == SENTENCE
        spans = list(zip(found.starts, found.ends, strict=True))
        if alphabet == "characters":
            assert "".join(SENTENCE[start:end] for start, end in spans) == SENTENCE
            assert not any(found.shared)
        else:
            assert {place for start, end in spans for place in range(start, end)} == set(range(len(SENTENCE)))
            assert not any(found.unknown)
    assert np.all(np.diff(found.sentence_tokens) <= 0)
    assert np.all(np.diff(found.n_tokens) < 0)
    assert np.all(np.diff(found.counts) <= 0)


def test_what_a_step_joined_is_marked_and_has_the_newest_id() -> None:
    for step in range(1, 60, 6):
        found = merge_step(**CHOICE | {"step": step, "corpus": "en"})
        fresh = [id_ for id_, new in zip(found.ids, found.fresh, strict=True) if new]
        assert set(fresh) <= {max(found.ids)}
        assert bool(fresh) == bool(found.sentence_tokens[step - 1] - found.sentence_tokens[step])


def test_letters_that_the_text_lacks_are_unknown() -> None:
    found = merge_step(**CHOICE | {"corpus": "own", "pasted": "ab ab ab", "merges": 1, "step": 1, "text": "abc"})
    assert (found.labels, found.unknown, found.ids[1]) == (("ab", "c"), (False, True), -1)


def test_a_bounded_text_has_a_bounded_lesson() -> None:
    assert learnable(corpus="own", pasted="one two", alphabet="characters") == 0
    assert learnable(corpus="own", pasted="ab ab", alphabet="bytes") == 1
    assert learnable(corpus="both", pasted="", alphabet="bytes") == 1_000


TEXTS = {
    "plain": "I expected a Masterpiece, but the story was dull.",
    "chinese": "这部电影很无聊，但结局不错。",
    "emoji": "👨\u200d👩\u200d👧\u200d👦 🇨🇳",
    "hebrew": "שלום עולם",
    "control": "a\x00b\tc\u202ed",
    "blanks": "  two  blanks ",
    "long": "x" * 2_000,
    "special": "[MASK] good [PAD]",
    "marks": "cafe\u0301 ﬁ Ώ",
}


def cuts(text: str) -> Cuts:
    return cut_sentence(bundle=BUNDLE, text=text, corpus="both", vocab_size=2_500)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_whatever_is_no_blank_stands_in_a_token_of_every_tokenizer(text: str) -> None:
    found = cuts(text)
    for one in found.cuts:
        covered = {place for start, end in zip(one.starts, one.ends, strict=True) for place in range(start, end)}
        missing = {character for place, character in enumerate(text) if place not in covered}
        assert all(character.isspace() or not character.isprintable() for character in missing), one.name
        assert one.n_tokens == sum(not special for special in one.special)
    assert found.pairs == tuple(one.n_tokens**2 for one in found.cuts)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_nothing_is_lost_exactly_where_the_text_comes_back(text: str) -> None:
    for one in cuts(text).cuts:
        if "[" not in text:
            assert (one.decoded == text) == (not one.losses), one.name
        assert ("unknown" in one.losses) == any(one.unknown)


def by_name(text: str) -> dict[str, Cut]:
    return {one.name: one for one in cuts(text).cuts}


def test_losses_are_named() -> None:
    assert by_name(TEXTS["plain"])["model"].losses == ("case",)
    assert by_name(TEXTS["plain"])["word"].losses[0] == "unknown"
    assert by_name(TEXTS["blanks"])["wordpiece"].losses == ("blanks",)
    assert by_name(TEXTS["control"])["model"].losses == ("characters",)
    assert all(by_name(text)["bpe"].losses == () for name, text in TEXTS.items() if name != "special")


def test_unknown_tokens_keep_what_they_hide() -> None:
    word = by_name("a masterpiece")["word"]
    assert (word.labels[1], word.unknown[1], word.n_unknown) == ("masterpiece", True, len("masterpiece"))


def test_bytes_of_one_character_are_marked_and_spell_it() -> None:
    bpe = by_name("👨 a")["bpe"]
    shared = [place for place, part in enumerate(bpe.shared) if part]
    assert {(bpe.starts[place], bpe.ends[place]) for place in shared} == {(0, 1)}
    assert bytes.fromhex("".join(bpe.spelled[place] for place in shared)).decode() == "👨"
    assert bytes.fromhex("".join(bpe.spelled)).decode() == "👨 a"
    assert not any(by_name("👨 a")["character"].shared)


def test_special_tokens_do_not_count() -> None:
    model = by_name("good film")["model"]
    assert (model.labels[0], model.special[0], model.spelled[0], model.n_tokens) == ("[CLS]", True, "", 2)


def test_learned_vocabularies_are_bounded_and_the_same_every_time() -> None:
    for kind in ("bpe", "wordpiece", "word", "character"):
        tokenizer = learned_tokenizer(kind, "en", 600)
        assert tokenizer.vocab_size <= 600
        again = learned_tokenizer.__wrapped__(kind, "en", 600)
        assert cut("again", again, TEXTS["plain"]).ids == cut("first", tokenizer, TEXTS["plain"]).ids


def test_all_of_it_can_be_saved() -> None:
    arrays = arrays_of(cuts(TEXTS["emoji"]))
    assert arrays["cuts.1.ids"].shape == arrays["cuts.1.starts"].shape
    assert not any(array.dtype == object for array in arrays.values())


CUT = {"bundle": BUNDLE, "text": "a", "corpus": "en", "vocab_size": 300}
OWN = CHOICE | {"corpus": "own"}
TOO_LONG = "a" * (MOST_CHARACTERS + 1)
REFUSED = [
    (lambda: merge_step(**CHOICE | {"corpus": "fr"}), "corpus='fr' is unknown; it must be one of 'both'"),
    (lambda: merge_step(**OWN | {"pasted": "a b c"}), "no two neighbours occur twice among 3 words"),
    (lambda: merge_step(**OWN | {"pasted": TOO_LONG}), "pasted has 200,001 characters; it may have 200,000"),
    (lambda: merge_step(**OWN | {"pasted": "ab ab \ud83d"}), "text must be valid Unicode"),
    (lambda: merge_step(**CHOICE | {"alphabet": "letters"}), "alphabet='letters' must be one of"),
    (lambda: merge_step(**CHOICE | {"merges": 0}), "merges=0 must be from 1 to 1000"),
    (lambda: merge_step(**CHOICE | {"step": 301}), "step=301 must be from 0 to 300"),
    (lambda: cut_sentence(**CUT | {"corpus": "fr"}), "corpus='fr' is unknown; it must be one of 'both'"),
    (lambda: cut_sentence(**CUT | {"vocab_size": 100}), "vocab_size=100 must be from 300 to 8000"),
    (lambda: cut_sentence(**CUT | {"text": "a\ud83d"}), "text must be valid Unicode"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
