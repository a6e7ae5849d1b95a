import re
import time

import pytest

from transformer_core.text import KINDS, SPECIAL_TOKENS, Tokenizer


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


def test_words_nobody_could_type_are_learned_from_in_linear_time() -> None:
    started = time.perf_counter()
    tokenizer = Tokenizer.train("bpe", ["ab" * 100_000 + " " * 100_000], vocab_size=280)
    assert time.perf_counter() - started < 5  # seconds; without the cut it takes minutes
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
