"""Batches hold every example once, are of about one length, and are fixed by the seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.training.batching import bucketed, padded

LENGTHS = np.random.default_rng(1).integers(1, 300, 5_000).tolist()


@given(st.lists(st.integers(1, 50), max_size=300), st.integers(1, 40), st.integers(0, 9))
def test_every_example_occurs_once_in_batches_of_the_size(lengths, batch_size, seed):
    batches = bucketed(lengths, batch_size, np.random.default_rng(seed))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert all(len(batch) <= batch_size for batch in batches)


def test_the_seed_fixes_the_order_and_another_gives_another():
    first, again, other = (bucketed(LENGTHS, 16, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first == again != other


def test_little_is_padding():
    batches = bucketed(LENGTHS, 16, np.random.default_rng(0))
    cells = sum(len(batch) * max(LENGTHS[place] for place in batch) for batch in batches)
    assert sum(LENGTHS) / cells > 0.95


def test_rows_are_padded_on_the_right():
    assert padded([[5, 6], [7]], 0).tolist() == [[5, 6], [7, 0]]


def test_what_cannot_be_batched_is_refused():
    with pytest.raises(ValueError, match=r"batch_size=0 must be at least 1"):
        bucketed([1], 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"rows=\[\[\]\] must hold at least one row with at least one id"):
        padded([[]], 0)
