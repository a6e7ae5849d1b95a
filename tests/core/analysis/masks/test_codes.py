"""A mask in a word: what is written is read again, presets are their formulas, and what is broken is said."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.analysis.masks.codes import MOST_PAINTED, mask_from_code, painted_code, painted_mask

IDS = (2, 7, 8, 0, 9, 3, 0, 0)


@given(st.integers(1, MOST_PAINTED), st.integers(0, 2**32 - 1))
def test_a_painted_mask_comes_back(size: int, seed: int) -> None:
    mask = torch.rand(size, size, generator=torch.Generator().manual_seed(seed)) < 0.5
    code = painted_code(mask)
    assert torch.equal(painted_mask(code), mask)
    assert painted_code(mask.numpy()) == code
    assert len(code) <= 690  # bounded: a link carries it


def test_the_first_cell_is_the_highest_bit() -> None:
    assert painted_code(torch.eye(3, dtype=torch.bool)) == "3.iIA"


@pytest.mark.parametrize(
    "code", ["", "x", "3.", "3.iI", "3.iIAA", "0.", "65.AAAA", "999.A", "3.i!A", "٣.iIA", "9" * 5000, "3.iIA\n"]
)
def test_a_broken_code_is_refused_in_words(code: str) -> None:
    with pytest.raises(ValueError, match=r"mask(='| of size)"):
        painted_mask(code)


def test_masks_too_large_or_not_square_are_refused() -> None:
    for shape in ((65, 65), (3, 4), (0, 0)):
        with pytest.raises(ValueError, match=r"must be square, from 1 to 64"):
            painted_code(torch.ones(shape, dtype=torch.bool))


def test_presets_are_their_formulas() -> None:
    size = len(IDS)
    query, key = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    expected = {
        "everything": torch.ones(size, size, dtype=torch.bool),
        "causal": key <= query,
        "padding": torch.tensor([id_ != 0 for id_ in IDS]).expand(size, size),
        "window.2": (query - key).abs() <= 2,
        "window.0": query == key,
        "prefix.3": (key <= query) | (key < 3),
    }
    for code, mask in expected.items():
        assert torch.equal(mask_from_code(code, IDS, 0), mask), code
    assert mask_from_code("padding", IDS, None).all()
    assert torch.equal(mask_from_code("prefix.0", IDS, 0), mask_from_code("causal", IDS, 0))


def test_a_mask_of_another_size_is_refused_with_both_sizes() -> None:
    with pytest.raises(ValueError, match=r"size 3 was painted for 3 tokens; there are 8"):
        mask_from_code("3.iIA", IDS, 0)
