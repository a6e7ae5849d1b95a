"""Learning a vocabulary: the merges of the tokenizers package, labels that leave ink."""

import json
import re
import unicodedata
from collections import Counter
from itertools import islice, pairwise

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from transformer_core.text import KINDS, SPECIAL_TOKENS, Tokenizer, visible
from transformer_core.text.lexicon import BYTE_OF, Spelling, build_lexicon, label_pieces
from transformer_core.text.merges import ALPHABETS, join, learn_merges, replay, spell, spelled_bytes, split_words
from transformer_core.training.corpora import passage


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_come_first(trained: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = trained[kind]
    assert tokenizer.kind == kind
    assert tuple(tokenizer.token_of(id_) for id_ in range(7)) == SPECIAL_TOKENS
    assert SPECIAL_TOKENS == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[BOS]", "[EOS]")
    roles = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id", "bos_id", "eos_id")
    assert [getattr(tokenizer, role) for role in roles] == list(range(7))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocab_size", [300, 350])
def test_same_texts_same_vocabulary_within_its_size(corpus: tuple[str, ...], kind: str, vocab_size: int) -> None:
    first, second = (Tokenizer.train(kind, corpus, vocab_size=vocab_size, min_frequency=1) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert first.vocab_size <= vocab_size


def test_wordpiece_keeps_its_size_when_there_are_more_characters() -> None:
    texts = ["".join(chr(0x4E00 + place) for place in range(300))] * 2
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=107)
    assert tokenizer.vocab_size == 57  # half of what is free, since a character may need a continuing form too
    assert sum(tokenizer.encode(texts[0]).unknown) == 250


@pytest.mark.parametrize(
    ("template", "single", "pair"),
    [
        ("cls", "[CLS] a [SEP]", "[CLS] a [SEP] b [SEP]"),
        ("bos_eos", "[BOS] a [EOS]", "[BOS] a [EOS] b [EOS]"),
        ("none", "a", "a b"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_templates(kind: str, template: str, single: str, pair: str) -> None:
    tokenizer = Tokenizer.train(kind, ["a b"] * 2, template=template)
    assert " ".join(tokenizer.encode("a").labels) == single
    assert " ".join(tokenizer.encode("a", "b").labels) == pair


def test_any_iterable_will_do_and_blanks_are_learned_by_characters() -> None:
    tokenizer = Tokenizer.train("character", (text for text in ["a b\n"] * 2))
    assert tokenizer.vocabulary()[7:] == ("⏎", "␣", "a", "b")


def test_rare_words_are_unknown(corpus: tuple[str, ...]) -> None:
    tokenizer = Tokenizer.train("word", ["one two two"])
    assert tokenizer.encode("one two").unknown == (False, True, False, False)


def test_words_nobody_could_type_are_cut_before_they_are_learned_from() -> None:
    """A word of 200,000 characters would be read again at each merge, which takes minutes."""
    tokenizer = Tokenizer.train("bpe", ["ab" * 100_000 + " " * 100_000], vocab_size=280)
    assert tokenizer.vocab_size == 280


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "letters"}, "kind='letters' must be one of ('bpe', 'wordpiece', 'word', 'character')"),
        ({"template": "xyz"}, "template='xyz' must be one of ('cls', 'bos_eos', 'none')"),
        ({"vocab_size": 262}, "vocab_size=262 must be at least 263 for kind='bpe'"),
        ({"kind": "word", "vocab_size": 7}, "vocab_size=7 must be at least 8 for kind='word'"),
        ({"min_frequency": 0}, "min_frequency=0 must be at least 1"),
        ({"texts": "a cat"}, "texts='a cat' must be several str, not one"),
        ({"texts": ["a", 3]}, "texts[1]=3 must be a str"),
        ({"texts": ["a", "b\ud83d"]}, "texts[1] must be valid Unicode: character 1 is the lone surrogate '\\ud83d'"),
        ({"texts": []}, "texts hold nothing but blanks in 0 items"),
        ({"texts": ["", " \n"]}, "texts hold nothing but blanks in 2 items"),
        ({"kind": "word", "min_frequency": 9}, "min_frequency=9 must be lower"),
        ({"kind": "wordpiece", "min_frequency": 9}, "min_frequency=9 must be lower"),
    ],
)
def test_errors_name_what_came_and_what_was_needed(options: dict, message: str) -> None:
    arguments = {"kind": "bpe", "texts": ["a cat", "a dog"], **options}
    with pytest.raises(ValueError, match=re.escape(message)):
        Tokenizer.train(arguments.pop("kind"), arguments.pop("texts"), **arguments)


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


AWKWARD = st.text(st.sampled_from("aé你😀\u200d \n"), min_size=1, max_size=8)


def test_byte_alphabet_is_the_package_s() -> None:
    assert set(BYTE_OF) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(BYTE_OF.values()) == list(range(256))
    for char in "aé你😀":
        ((word, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(char)
        assert bytes(BYTE_OF[letter] for letter in word) == char.encode()


@given(AWKWARD, st.data())
def test_each_split_character_is_labelled_with_all_its_parts(text: str, data: st.DataObject) -> None:
    encoded = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(encoded) - 1)), max_size=len(encoded))))
    bounds = [0, *(cut for cut in cuts if cut < len(encoded)), len(encoded)]
    pieces = [encoded[start:end] for start, end in pairwise(bounds)]

    labels = label_pieces(pieces)

    assert len(labels) == len(pieces)
    start = 0
    for char in text:
        end = start + len(char.encode())
        holders = [k for k in range(len(pieces)) if bounds[k] < end and bounds[k + 1] > start]
        for part, holder in enumerate(holders, start=1):
            if len(holders) > 1:
                assert f"{visible(char)} {part}/{len(holders)}" in labels[holder]
            elif char.isalnum():
                assert char in labels[holder]
        start = end


@given(AWKWARD)
def test_pieces_between_characters_need_no_context(text: str) -> None:
    assert label_pieces([char.encode() for char in text]) == [visible(char) for char in text]


@pytest.mark.parametrize(
    ("pieces", "labels"),
    [
        ([b"\xe4\xbd"], ["<E4 BD>"]),
        ([b"\xe4", b"\xbd", b"\xa0"], ["你 1/3", "你 2/3", "你 3/3"]),
        ([b" \xe4", b"\xbd\xa0"], ["␣ 你 1/2", "你 2/2"]),
        ([b"\xa0ok", b"\xe4"], ["<A0> ok", "<E4>"]),
        ([b"\xbd\xa0\xe5\xa5\xbd"], ["<BD A0> 好"]),
        ([b"", b"a"], ["<empty>", "a"]),
    ],
)
def test_labels_of_pieces(pieces: list[bytes], labels: list[str]) -> None:
    assert label_pieces(pieces) == labels


@pytest.mark.parametrize(
    ("spelling", "token", "spelled"),
    [
        (Spelling(byte_level=True), "Ġthe", " the"),
        (Spelling(byte_level=True), "ä½ł", "你"),
        (Spelling(byte_level=True), "你", "你"),
        (Spelling(), "Ġthe", "Ġthe"),
        (Spelling(continuation="##"), "##ing", "·ing"),
        (Spelling(continuation="##"), "##", "##"),
        (Spelling(metaspace=True), "▁the", " the"),
        (Spelling(byte_fallback=True), "<0x0A>", "\n"),
        (Spelling(word_end="</w>"), "the</w>", "the"),
    ],
)
def test_spelling(spelling: Spelling, token: str, spelled: str) -> None:
    assert spelling.spell(token) == spelled.encode()


def test_gaps_and_literal_entries() -> None:
    lexicon = build_lexicon({"Ġa": 0, "Ġb": 3}, literal={3}, spelling=Spelling(byte_level=True))
    assert lexicon.tokens == ("Ġa", None, None, "Ġb")
    assert lexicon.labels == ("␣a", "<unused>", "<unused>", "Ġb")
    assert lexicon.fragments == frozenset()


def test_entries_beyond_the_vocabulary_are_unused(word_tokenizer) -> None:
    wide = word_tokenizer.widened(word_tokenizer.vocab_size + 2)
    assert wide.vocab_size == word_tokenizer.vocab_size + 2
    assert wide.label_of(wide.vocab_size - 1) == "<unused>"
    assert wide.encode("a glass box") == word_tokenizer.encode("a glass box")
    assert wide.decode([*word_tokenizer.encode("a glass box").ids, wide.vocab_size - 1]) == "a glass box"
    assert word_tokenizer.widened(1).vocab_size == word_tokenizer.vocab_size


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("cat", "cat"),
        (" the cat", "␣the␣cat"),
        ("\n", "⏎"),
        ("a\t\n", "a⇥⏎"),
        ("\u200b", "<U+200B>"),
        ("\x00", "<U+0000>"),
        ("\u202eabc", "<U+202E>abc"),
        ("\u200d", "<U+200D>"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("\ufe0f", "<U+FE0F>"),
        ("\u0301", "◌\u0301"),
        (" \u0301", "␣◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("\u3000", "<U+3000>"),
        ("\u3164", "<U+3164>"),
        ("\U000e0041", "<U+E0041>"),
        ("", "<empty>"),
    ],
)
def test_marks(text: str, label: str) -> None:
    assert visible(text) == label


@given(st.characters(exclude_categories=["Cs"]))
def test_every_single_character_leaves_ink(char: str) -> None:
    label = visible(char)
    assert label.isprintable()
    assert " " not in label
    assert not unicodedata.category(label[0]).startswith("M")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_only_joiners_stay_unprintable(text: str) -> None:
    assert visible(text).replace("\u200c", "").replace("\u200d", "").isprintable()
