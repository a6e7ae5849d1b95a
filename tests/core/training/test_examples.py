"""No text is in both parts of a split, the classes keep their shares, and equal texts count once."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_core.training.examples import Example, distinct, split

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
lists = st.lists(st.builds(Example, texts, st.integers(0, 19)), min_size=1)


def same(text):
    return " ".join(text.casefold().split())


@settings(deadline=None, max_examples=100)
@given(lists, st.integers(1, 60), st.integers(0, 9))
def test_no_text_is_in_both_parts_and_none_is_lost(examples, held_out, seed):
    counts = Counter(example.label for example in distinct(examples))
    if min(counts.values()) < 2:
        with pytest.raises(ValueError, match="to hold one out, at least 2 are needed"):
            split(examples, held_out, seed)
        return
    train, aside = split(examples, held_out, seed)
    assert not {same(example.text) for example in train} & {same(example.text) for example in aside}
    assert sorted([*train, *aside], key=str) == sorted(distinct(examples), key=str)
    assert {example.label for example in train} == {example.label for example in aside} == counts.keys()
    assert len(aside) <= max(held_out, len(counts))
    assert len(aside) <= max(sum(counts.values()) // 4, len(counts))
    assert (train, aside) == split(examples, held_out, seed)


def test_a_split_keeps_the_shares_of_the_classes():
    examples = [Example(f"text {n}", int(n % 10 == 0) + int(n % 5 == 0)) for n in range(1_000)]
    train, aside = split(examples, 100, 3)
    assert Counter(example.label for example in aside) == {0: 80, 1: 10, 2: 10}
    assert 0.7 < np.mean([example.label == 0 for example in train[:100]]) < 0.9
    assert aside != split(examples, 100, 4)[1]
    with pytest.raises(ValueError, match="held_out=0 must be at least 1"):
        split(examples, 0, 3)


def test_the_first_of_equal_texts_is_kept():
    kept = distinct([Example("A  b", 1), Example("c", 0), Example(" a B", 0)])
    assert set(kept) == {Example("A  b", 1), Example("c", 0)}
    assert len(kept) == 2
