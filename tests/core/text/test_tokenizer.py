"""Tokenizers: every token points at its source, batches and cuts keep what they say."""

import dataclasses
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.text import KINDS, SPECIAL_TOKENS, Encoding, Tokenizer, make_batch
from transformer_core.text.encoding import shares

AWKWARD = st.sampled_from(
    [
        *("the cat", "walking", " ", "\n", "\r\n", "\t", "\x00", "\x07", "\x85", "\u2028"),
        *("\u00a0", "\ufeff", "\ufffd", "\u202e", "\u200b", "\U0010ffff", "\uffff", "한", "مرحبا", "שלום"),
        *("你", "今天", "e\u0301", "é", "İ", "ß", "ﬁ", "Σ", "\u0345", "##", "Ġ", "ä½", "[MASK]", "[UNK]", "[CLS", "]"),
        *("👨\u200d👩\u200d👧", "🇫🇷", "👍🏽", "❤\ufe0f"),
    ]
)
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TEXTS = st.one_of(UNICODE, st.lists(st.one_of(AWKWARD, UNICODE), max_size=8).map("".join))
# What a label may hold beside characters of the text: marks for blanks, parts, code points, and the special names.
MARKS = set("␣⏎⇥◌· /0123456789<U+ABCDEF>")


def check_encoding(tokenizer: Tokenizer, encoding: Encoding, text: str) -> None:
    """Assert what holds for every encoding of one text, whatever the kind."""
    assert encoding.text == text
    content = [position for position in range(len(encoding)) if not encoding.special[position]]
    assert encoding.ids[0] == tokenizer.cls_id
    assert encoding.ids[-1] == tokenizer.sep_id
    assert encoding.segment_ids == (0,) * len(encoding)
    assert encoding.offsets[0] == encoding.offsets[-1] == (0, 0)
    spans = [encoding.offsets[position] for position in content]
    assert spans == sorted(spans)
    assert all(a[1] <= b[1] for a, b in pairwise(spans))
    for position in content:
        start, end = encoding.offsets[position]
        assert 0 <= start < end <= len(text)
        assert encoding.surface(position) == text[start:end]
        assert tokenizer.id_of(encoding.tokens[position]) == encoding.ids[position]
        assert encoding.unknown[position] == (encoding.ids[position] == tokenizer.unk_id)
        assert encoding.labels[position]


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS)
def test_every_token_points_at_its_source(trained: dict[str, Tokenizer], kind: str, text: str) -> None:
    check_encoding(trained[kind], trained[kind].encode(text), text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS)
def test_lowercasing_leaves_the_source_alone(lowercased: dict[str, Tokenizer], kind: str, text: str) -> None:
    check_encoding(lowercased[kind], lowercased[kind].encode(text), text)


@given(text=TEXTS)
def test_bytes_round_trip_and_are_never_unknown(trained: dict[str, Tokenizer], text: str) -> None:
    encoding = trained["bpe"].encode(text)
    assert not any(encoding.unknown)
    if not any(name in text for name in SPECIAL_TOKENS):
        assert trained["bpe"].decode(encoding.ids) == text
        assert {place for start, end in encoding.offsets for place in range(start, end)} == set(range(len(text)))


@given(data=st.data())
def test_trained_characters_round_trip(trained: dict[str, Tokenizer], corpus: tuple[str, ...], data) -> None:
    text = data.draw(st.text(st.sampled_from(sorted(set("".join(corpus))))))
    encoding = trained["character"].encode(text)
    assert len(encoding) == len(text) + 2
    assert not any(encoding.unknown)
    assert trained["character"].decode(encoding.ids) == text


@given(text=st.text(st.sampled_from("今你龍éüñ😀👩\u200d🇫 \n"), max_size=10))
def test_labels_are_made_of_the_text(trained: dict[str, Tokenizer], text: str) -> None:
    for kind in KINDS:
        encoding = trained[kind].encode(text)
        for label in encoding.labels[1:-1]:
            assert set(label) <= set(text) | MARKS, (kind, label)


def test_labels_by_kind(trained: dict[str, Tokenizer]) -> None:
    assert trained["bpe"].encode("龍 the").labels == ("[CLS]", "龍 1/3", "龍 2/3", "龍 3/3", "␣the", "[SEP]")
    assert trained["wordpiece"].encode("walking龍").labels == ("[CLS]", "walking", "龍", "[SEP]")
    assert trained["wordpiece"].encode("mating").labels[1:3] == ("mat", "·ing")
    assert trained["word"].encode("the zebra").labels == ("[CLS]", "the", "zebra", "[SEP]")
    assert trained["character"].encode("a\n\t\u200b").labels == ("[CLS]", "a", "⏎", "⇥", "<U+200B>", "[SEP]")


def test_labels_out_of_context(trained: dict[str, Tokenizer]) -> None:
    bpe = trained["bpe"]
    ids = bpe.encode("龍").ids
    assert [bpe.label_of(id_) for id_ in ids] == ["[CLS]", "<E9>", "<BE>", "<8D>", "[SEP]"]
    assert bpe.labels_of(torch.tensor(ids)) == ("[CLS]", "龍 1/3", "龍 2/3", "龍 3/3", "[SEP]")
    assert bpe.labels_of(ids[1:3]) == ("<E9>", "<BE>")
    assert bpe.vocabulary() == tuple(bpe.label_of(id_) for id_ in range(bpe.vocab_size))


def test_chinese_characters_stand_alone(trained: dict[str, Tokenizer]) -> None:
    for kind in ("wordpiece", "word", "character"):
        encoding = trained[kind].encode("今天天气很好，")
        assert encoding.labels[1:-1] == tuple("今天天气很好，")
        assert trained[kind].decode(encoding.ids) == "今天天气很好，"


def test_special_tokens_in_the_text_are_taken_for_themselves(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.encode("the [MASK] [UNK]")
    mask, unk = encoding.ids.index(tokenizer.mask_id), encoding.ids.index(tokenizer.unk_id)
    for position, name in ((mask, "[MASK]"), (unk, "[UNK]")):
        assert encoding.labels[position] == encoding.surface(position) == name
        assert encoding.special[position]
        assert not encoding.unknown[position]


def test_unknown_tokens_show_their_source(trained: dict[str, Tokenizer]) -> None:
    encoding = trained["word"].encode("the Zebra, 斑")
    assert encoding.tokens == ("[CLS]", "the", "[UNK]", ",", "[UNK]", "[SEP]")
    assert encoding.labels == ("[CLS]", "the", "Zebra", ",", "斑", "[SEP]")
    assert encoding.unknown == (False, False, True, False, True, False)
    assert encoding.special == (True, False, False, False, False, True)


def test_empty_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("").tokens == ("[CLS]", "[SEP]")
    assert tokenizer.encode("", "").segment_ids == (0, 0, 1)
    assert tokenizer.decode([]) == ""
    assert tokenizer.encode_batch([]) == []


def test_decode_joins_words_as_people_write_them(trained: dict[str, Tokenizer]) -> None:
    for kind in ("wordpiece", "word"):
        text = "It's raining again; they're walking (slowly) to the café."
        assert trained[kind].decode(trained[kind].encode(text).ids) == text


def test_decode_keeps_special_tokens_on_request(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("the").ids
    assert tokenizer.decode(torch.tensor(ids)) == "the"
    assert tokenizer.decode(ids, skip_special=False).replace(" ", "") == "[CLS]the[SEP]"


@given(texts=st.lists(TEXTS, max_size=4), max_len=st.one_of(st.none(), st.integers(5, 9)))
def test_a_batch_is_its_encodings(trained: dict[str, Tokenizer], texts: list[str], max_len: int | None) -> None:
    for tokenizer in trained.values():
        singles = [tokenizer.encode(text, max_len=max_len) for text in texts]
        assert tokenizer.encode_batch(texts, max_len=max_len) == singles
        assert tokenizer.ids_of(texts, max_len=max_len) == [single.ids for single in singles]
        pairs = [tokenizer.encode(text, text[::-1], max_len=max_len) for text in texts]
        assert tokenizer.encode_batch(texts, [text[::-1] for text in texts], max_len=max_len) == pairs


def test_threads_share_one_tokenizer(tokenizer: Tokenizer, corpus: tuple[str, ...]) -> None:
    jobs = [(text, pair, max_len) for text in corpus[:5] for pair in (None, "a dog") for max_len in (None, 5, 8)] * 10
    alone = [tokenizer.encode(text, pair, max_len=max_len) for text, pair, max_len in jobs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda job: tokenizer.encode(job[0], job[1], max_len=job[2]), jobs))
    assert together == alone


def test_tokenizers_travel_to_other_processes(tokenizer: Tokenizer, corpus: tuple[str, ...]) -> None:
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode(corpus[1]) == tokenizer.encode(corpus[1])
    assert copy.vocabulary() == tokenizer.vocabulary()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.encode(None), "text=None must be a str"),
        (lambda t: t.encode("a", 3), "pair=3 must be a str"),
        (lambda t: t.encode("ab\ud800"), "text must be valid Unicode: character 2 is the lone surrogate '\\ud800'"),
        (lambda t: t.encode("a", "\udfff"), "pair must be valid Unicode: character 0 is the lone surrogate '\\udfff'"),
        (lambda t: t.encode_batch("cat"), "texts='cat' must be several str, not one"),
        (lambda t: t.encode_batch(["a", "\ud800"]), "texts[1] must be valid Unicode"),
        (lambda t: t.encode_batch(["a"], ["b", "c"]), "len(pairs)=2 must equal len(texts)=1"),
        (lambda t: t.encode("a", max_len=2), "max_len=2 must be at least 3: 2 special and 1 others"),
        (lambda t: t.encode("a", "b", max_len=4), "max_len=4 must be at least 5: 3 special and 2 others"),
        (lambda t: t.decode([2, -1]), "ids[1]=-1 must be in [0, "),
        (lambda t: t.decode([t.vocab_size]), "must be in [0, "),
        (lambda t: t.labels_of([10**9]), "ids[0]=1000000000 must be in [0, "),
        (lambda t: t.token_of(-1), "id_=-1 must be in [0, "),
        (lambda t: t.label_of(10**6), "id_=1000000 must be in [0, "),
    ],
)
def test_errors_name_what_came_and_what_was_needed(tokenizer: Tokenizer, call, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call(tokenizer)


def test_id_of_a_missing_entry_is_none(tokenizer: Tokenizer) -> None:
    assert tokenizer.id_of("no such entry") is None
    assert tokenizer.id_of("[SEP]") == 3


@given(texts=st.lists(st.text("cat 今", max_size=12), min_size=1, max_size=5), pair=st.booleans())
def test_rows_are_the_encodings_and_the_mask_tells_padding(
    trained: dict[str, Tokenizer], texts: list[str], pair: bool
) -> None:
    tokenizer = trained["bpe"]
    encodings = tokenizer.encode_batch(texts, texts[::-1] if pair else None)
    batch = make_batch(encodings, padding=tokenizer.pad_id)

    assert batch.token_ids.shape == batch.segment_ids.shape == batch.mask.shape
    assert batch.mask.shape == (len(texts), max(map(len, encodings)))
    assert (batch.token_ids.dtype, batch.segment_ids.dtype, batch.mask.dtype) == (torch.int64, torch.int64, torch.bool)
    assert batch.encodings == tuple(encodings)
    assert len(batch) == len(texts)
    for row, encoding in enumerate(encodings):
        assert batch.mask[row].tolist() == [k < len(encoding) for k in range(batch.mask.shape[1])]
        assert tuple(batch.token_ids[row][batch.mask[row]].tolist()) == encoding.ids
        assert tuple(batch.segment_ids[row][batch.mask[row]].tolist()) == encoding.segment_ids
        assert batch.token_ids[row][~batch.mask[row]].eq(tokenizer.pad_id).all()
        assert batch.segment_ids[row][~batch.mask[row]].eq(0).all()


def test_the_given_padding_is_used(trained: dict[str, Tokenizer]) -> None:
    encodings = trained["character"].encode_batch(["a", "cat"])
    assert make_batch(encodings, padding=9).token_ids[0, 3:].tolist() == [9, 9]


def test_no_encodings() -> None:
    with pytest.raises(ValueError, match=re.escape("encodings=[] must hold at least one encoding")):
        make_batch([], padding=0)


def test_padding_must_be_an_id(trained: dict[str, Tokenizer]) -> None:
    with pytest.raises(ValueError, match="padding=-7 must be a token id, or -1"):
        make_batch([trained["word"].encode("the")], padding=-7)


@pytest.fixture
def encoding() -> Encoding:
    return Encoding(
        ids=(2, 7, 3, 8, 3),
        tokens=("[CLS]", "cat", "[SEP]", "dog", "[SEP]"),
        labels=("[CLS]", "cat", "[SEP]", "dog", "[SEP]"),
        offsets=((0, 0), (4, 7), (0, 0), (2, 5), (0, 0)),
        segment_ids=(0, 0, 0, 1, 1),
        special=(True, False, True, False, True),
        unknown=(False,) * 5,
        text="the cat",
        pair="a dog",
    )


def test_surface_takes_the_slice_of_its_own_text(encoding: Encoding) -> None:
    assert [encoding.surface(position) for position in range(len(encoding))] == ["", "cat", "", "dog", ""]


@pytest.mark.parametrize("position", [-1, 5])
def test_surface_names_the_bad_position(encoding: Encoding, position: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"position={position} must be in [0, 5)")):
        encoding.surface(position)


def test_columns_must_agree_in_length(encoding: Encoding) -> None:
    with pytest.raises(ValueError, match=re.escape("len(labels)=1 must equal len(ids)=5")):
        dataclasses.replace(encoding, labels=("[CLS]",))


def test_frozen(encoding: Encoding) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        encoding.truncated = 3  # type: ignore[misc]


COUNTS = st.integers(0, 30)


@given(room=st.integers(2, 40), n_first=COUNTS, n_second=COUNTS)
def test_shares_fill_the_room_and_spare_the_shorter(room: int, n_first: int, n_second: int) -> None:
    first, second = shares(room, n_first, n_second)
    assert 0 <= first <= n_first
    assert 0 <= second <= n_second
    assert first + second == min(room, n_first + n_second)
    if first < n_first and second < n_second:
        assert abs(first - second) <= 1
    elif first < n_first:
        assert first >= second - 1
    elif second < n_second:
        assert second >= first - 1


@pytest.mark.parametrize("kind", KINDS)
@given(
    text=st.text(st.sampled_from("cat 今天😀"), max_size=20),
    pair=st.one_of(st.none(), st.text(st.sampled_from("dog 公园"), max_size=20)),
    max_len=st.integers(5, 25),
)
def test_what_is_kept_is_the_beginning_and_the_special_tokens(
    trained: dict[str, Tokenizer], kind: str, text: str, pair: str | None, max_len: int
) -> None:
    tokenizer = trained[kind]
    whole, cut = tokenizer.encode(text, pair), tokenizer.encode(text, pair, max_len=max_len)

    assert len(cut) == min(max_len, len(whole))
    assert cut.truncated == len(whole) - len(cut)
    assert cut.ids[0] == tokenizer.cls_id
    assert cut.ids[-1] == tokenizer.sep_id
    assert cut.ids.count(tokenizer.sep_id) == whole.ids.count(tokenizer.sep_id)
    for segment in (0, 1):
        kept, all_ = (
            [(e.ids[k], e.labels[k], e.offsets[k]) for k in range(len(e)) if e.segment_ids[k] == segment]
            for e in (cut, whole)
        )
        assert kept[:-1] == all_[: len(kept) - 1] if kept else not all_


def test_end_token_stays_with_the_other_template() -> None:
    tokenizer = Tokenizer.train("word", ["a b c"] * 2, template="bos_eos")
    assert tokenizer.encode("a b c a b c", max_len=4).tokens == ("[BOS]", "a", "b", "[EOS]")
    assert tokenizer.encode("a b c", max_len=5).truncated == 0


def test_without_template_one_token_is_enough() -> None:
    tokenizer = Tokenizer.train("word", ["a b c"] * 2, template="none")
    assert tokenizer.encode("a b c", max_len=1).tokens == ("a",)
    with pytest.raises(ValueError, match="max_len=0 must be at least 1: 0 special and 1 others"):
        tokenizer.encode("a b c", max_len=0)


@given(text=st.text("cat ", max_size=9), pair=st.text("dog ", max_size=9))
def test_segments_tell_the_texts_apart(trained: dict[str, Tokenizer], text: str, pair: str) -> None:
    for tokenizer in trained.values():
        encoding = tokenizer.encode(text, pair)
        n_first = len(tokenizer.encode(text))
        assert encoding.segment_ids == (0,) * n_first + (1,) * (len(encoding) - n_first)
        for position in range(len(encoding)):
            source = pair if encoding.segment_ids[position] else text
            start, end = encoding.offsets[position]
            assert encoding.surface(position) == source[start:end]
            assert encoding.special[position] == (encoding.surface(position) == "")
