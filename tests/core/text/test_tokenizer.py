import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.text import KINDS, SPECIAL_TOKENS, Encoding, Tokenizer

AWKWARD = st.sampled_from(
    [
        *(
            "the cat",
            "walking",
            " ",
            "\n",
            "\r\n",
            "\t",
            "\x00",
            "\x07",
            "\x85",
            "\u2028",
            "\u00a0",
            "\ufeff",
            "\ufffd",
        ),
        *("你", "今天", "e\u0301", "é", "İ", "ß", "ﬁ", "Σ", "\u0345", "##", "Ġ", "ä½", "[MASK]", "[UNK]", "[CLS", "]"),
        *(
            "👨\u200d👩\u200d👧",
            "🇫🇷",
            "👍🏽",
            "❤\ufe0f",
            "مرحبا",
            "שלום",
            "\u202e",
            "\u200b",
            "한",
            "\U0010ffff",
            "\uffff",
        ),
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
