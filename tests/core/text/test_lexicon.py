from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from transformer_core.text import visible
from transformer_core.text.lexicon import BYTE_OF, Spelling, build_lexicon, label_pieces

TEXTS = st.text(st.sampled_from("aé你😀\u200d \n"), min_size=1, max_size=8)


def test_byte_alphabet_is_the_package_s() -> None:
    assert set(BYTE_OF) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(BYTE_OF.values()) == list(range(256))
    for char in "aé你😀":
        ((word, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(char)
        assert bytes(BYTE_OF[letter] for letter in word) == char.encode()


@given(TEXTS, st.data())
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


@given(TEXTS)
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
