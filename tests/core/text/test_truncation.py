import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.text import KINDS, Tokenizer
from transformer_core.text.encoding import shares

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
