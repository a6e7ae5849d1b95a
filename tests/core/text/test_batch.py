import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.text import Tokenizer, make_batch


@given(texts=st.lists(st.text("cat 今", max_size=12), min_size=1, max_size=5), pair=st.booleans())
def test_rows_are_the_encodings_and_the_mask_tells_padding(
    trained: dict[str, Tokenizer], texts: list[str], pair: bool
) -> None:
    tokenizer = trained["bpe"]
    encodings = tokenizer.encode_batch(texts, texts[::-1] if pair else None)
    batch = make_batch(encodings, pad_id=tokenizer.pad_id)

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


def test_pad_id_is_used(trained: dict[str, Tokenizer]) -> None:
    encodings = trained["character"].encode_batch(["a", "cat"])
    assert make_batch(encodings, pad_id=9).token_ids[0, 3:].tolist() == [9, 9]


def test_no_encodings() -> None:
    with pytest.raises(ValueError, match=re.escape("encodings=[] must hold at least one encoding")):
        make_batch([], pad_id=0)


@pytest.mark.parametrize("pad_id", [None, -1])
def test_pad_id_must_be_an_id(trained: dict[str, Tokenizer], pad_id: int | None) -> None:
    with pytest.raises(ValueError, match=f"pad_id={pad_id} must be a token id"):
        make_batch([trained["word"].encode("the")], pad_id=pad_id)
