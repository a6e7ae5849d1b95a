"""Our readable learner finds the merges of the `tokenizers` package, and cuts as it does."""

import json
import re
from collections import Counter
from itertools import islice, pairwise

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from transformer_core.text import Tokenizer
from transformer_core.text.merges import ALPHABETS, join, learn_merges, replay, spell, spelled_bytes, split_words
from transformer_core.training.corpora import passage

TEXTS = {
    "english": passage("en")[:9_000],
    "chinese": passage("zh")[:4_000],
    "overlaps": "aaaa aaaaa aaa ababab bababa aaaaaaa cdcdcd\n" * 5,
    "signs": "don't  stop…  3.14 and 2.71!? \t\n— naïve cafe\u0301 👨\u200d👩\u200d👧 שלום 🇨🇳 " * 3,
}


def library(words: list[str], alphabet: str) -> tokenizers.Tokenizer:
    """Learn with the `tokenizers` package from the same words."""
    pipeline = tokenizers.Tokenizer(models.BPE())
    if alphabet == "bytes":
        pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=4_000, min_frequency=2, show_progress=False)
    pipeline.train_from_iterator(words, trainer)
    return pipeline


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("name", TEXTS)
def test_merges_are_those_of_the_tokenizers_package_ties_included(name: str, alphabet: str) -> None:
    words = [word for word, _ in split_words(TEXTS[name])]
    pipeline = library(words, alphabet)
    merges = [merge.pair for merge in islice(learn_merges(Counter(words), alphabet=alphabet), 1_500)]
    theirs = [tuple(pair) for pair in json.loads(pipeline.to_str())["model"]["merges"]]
    assert merges
    assert merges == theirs[: len(merges)]
    assert len(merges) in (1_500, len(theirs))


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("name", ["english", "chinese", "signs"])
def test_words_are_cut_as_the_tokenizers_package_cuts_them(name: str, alphabet: str) -> None:
    words = sorted({word for word, _ in split_words(TEXTS[name])})
    pipeline = library([word for word, _ in split_words(TEXTS[name])], alphabet)
    merges = [tuple(pair) for pair in json.loads(pipeline.to_str())["model"]["merges"]]
    *_, cut = replay(words, merges, alphabet=alphabet)
    assert cut == [encoding.tokens for encoding in pipeline.encode_batch(words)]


def test_merges_over_bytes_are_those_of_our_byte_level_tokenizer() -> None:
    text = TEXTS["english"]
    tokenizer = Tokenizer.train("bpe", [text], vocab_size=7 + 256 + 200, template="none")
    words = Counter(word for word, _ in split_words(text))
    made = ["".join(merge.pair) for merge in islice(learn_merges(words, alphabet="bytes"), 200)]
    assert made == [tokenizer.token_of(id_) for id_ in range(263, 463)]


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_every_count_is_the_count_of_a_fresh_look(alphabet: str) -> None:
    words = Counter(word for word, _ in split_words(TEXTS["signs"] + TEXTS["overlaps"]))
    counts = Counter(pair for word in words for pair in pairwise(spell(word, alphabet)) for _ in range(words[word]))
    lines = {word: spell(word, alphabet) for word in words}
    for merge in islice(learn_merges(words, alphabet=alphabet), 40):
        assert merge.count == counts[merge.pair] == max(counts.values())
        lines = {word: join(line, merge.pair) for word, line in lines.items()}
        counts = Counter(pair for word, line in lines.items() for pair in pairwise(line) for _ in range(words[word]))
        assert merge.n_tokens == sum(len(line) * words[word] for word, line in lines.items())
        assert merge.pair not in counts


def test_the_papers_own_example_begins_with_es_and_est() -> None:
    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    pairs = [merge.pair for merge in learn_merges(words)]
    assert pairs[0] == ("e", "s")  # 9 times, as often as s t and t at the end; e is the older letter
    assert pairs[1] == ("es", "t")


def test_words_cover_the_text_and_symbols_cover_their_word() -> None:
    for text in TEXTS.values():
        cut = split_words(text)
        assert "".join(word for word, _ in cut) == text
        assert all(text[start : start + len(word)] == word for word, start in cut)
        for word, _ in cut[:50]:
            assert b"".join(spelled_bytes(symbol, "bytes") for symbol in spell(word, "bytes")) == word.encode()


def test_a_word_nobody_could_type_is_cut() -> None:
    assert [len(word) for word, _ in split_words("a" * 1_200)] == [500, 500, 200]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spell("a", "letters"), "alphabet='letters' must be one of ('characters', 'bytes')"),
        (lambda: next(learn_merges({"a": 1}, least=0)), "least=0 must be at least 1"),
        (lambda: split_words("a\ud83d"), "text must be valid Unicode"),
    ],
)
def test_errors_say_what_is_needed(call, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
