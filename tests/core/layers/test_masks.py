"""Masks: True may attend; both forms, and every combination, say the same."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close, exactly
from transformer_core.layers.attention import masked_softmax
from transformer_core.layers.masks import additive_mask, causal_mask, check_mask, combined_mask, padding_mask

IDS = torch.tensor([[5, 6, 0, 0], [5, 6, 7, 0]])
MISFIT = "it must broadcast to (batch, head, query_pos, key_pos) = (2, 3, 4, 5)"


def test_padding_is_hidden_from_every_query():
    mask = padding_mask(IDS, 0)
    assert mask.shape == (2, 1, 1, 4)
    assert mask[:, 0, 0].tolist() == [[True, True, False, False], [True, True, True, False]]


@pytest.mark.parametrize(("ids", "pad_id"), [(IDS, None), (IDS[:, :2], 0), (IDS, 9)])
def test_no_padding_needs_no_mask(ids, pad_id):
    assert padding_mask(ids, pad_id) is None


@given(st.integers(1, 8), st.integers(0, 5))
def test_causal_queries_are_the_last_positions(queries, cached):
    keys = queries + cached
    mask = causal_mask(queries, keys)
    for i in range(queries):
        for j in range(keys):
            assert bool(mask[i, j]) == (j <= i + cached)
    assert torch.equal(mask, causal_mask(keys)[cached:])


@given(st.integers(0, 99))
def test_boolean_and_additive_forms_agree(seed):
    generator = torch.Generator().manual_seed(seed)
    scores, mask = torch.randn(2, 3, 4, 5, generator=generator), torch.rand(4, 5, generator=generator) > 0.5
    added = additive_mask(mask)
    assert set(added.unique().tolist()) <= {0.0, float("-inf")}
    close(masked_softmax(scores + added), masked_softmax(scores.masked_fill(~mask, float("-inf"))))
    assert additive_mask(mask, torch.float64).dtype == torch.float64


def test_combined_allows_what_all_allow():
    padding, causal = padding_mask(IDS, 0), causal_mask(4)
    combined = combined_mask(padding, None, causal)
    assert combined.shape == (2, 1, 4, 4)
    for i in range(4):
        for j in range(4):
            assert bool(combined[0, 0, i, j]) == (j <= i and j < 2)
    assert combined_mask(None, None) is None
    assert combined_mask() is None
    assert combined_mask(None, causal) is causal


@pytest.mark.parametrize("shape", [(), (5,), (4, 5), (4, 1), (3, 1, 1), (2, 1, 1, 5), (2, 3, 4, 5)])
def test_masks_that_fit(shape):
    check_mask(torch.ones(shape, dtype=torch.bool), (2, 3, 4, 5))


@pytest.mark.parametrize("shape", [(4,), (5, 4), (2, 4, 5), (6, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_masks_that_do_not_fit_name_both_shapes(shape):
    with pytest.raises(ValueError, match=exactly(f"mask has shape {shape}; {MISFIT}")):
        check_mask(torch.ones(shape, dtype=torch.bool), (2, 3, 4, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_masks_that_are_not_boolean_name_their_dtype(dtype):
    message = f"mask has dtype {dtype}; it must be torch.bool, True where a query may attend"
    with pytest.raises(ValueError, match=exactly(message)):
        check_mask(torch.ones(4, 5, dtype=dtype), (2, 3, 4, 5))
