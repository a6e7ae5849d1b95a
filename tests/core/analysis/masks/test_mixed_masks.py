"""A mask repeated head by head makes a sentence depend on its batch mates; each head's own mask does not."""

import numpy as np
import pytest
import torch

from tests.helpers.browser import BUNDLE
from tests.helpers.engine import small_bundle
from transformer_core.analysis.masks.mixed_masks import mixed_masks, repeated_by_head
from transformer_core.bundle import Bundle
from transformer_core.models import Gpt

TEXTS = ("I loved it.", "Not a dull scene in two hours.", "The ending was slow, but superb.")


def test_rows_are_those_of_the_repeat_in_the_tutorials() -> None:
    real = torch.tensor([[True, False, False], [True, True, True]])
    slipped = real[:, None].repeat(4, 1, 1)  # (head * batch, 1, pos), where the scores are (batch * head, ...)
    right = real[:, None].repeat_interleave(4, 0)
    assert repeated_by_head(real, 4).flatten(0, 1).equal(slipped)
    assert not slipped.equal(right)
    worn = mixed_masks(bundle=small_bundle(), texts=("a glass box", "a"), n_tokens=8).worn
    assert worn.tolist() == [[0, 1], [0, 1]]


def test_reordering_moves_sentences_in_the_variant_alone() -> None:
    found = mixed_masks(bundle=BUNDLE, texts=TEXTS, n_tokens=24)
    assert found.right_moves.max() < 1e-5
    assert found.right_apart.max() < 1e-5
    assert (found.mixed_moves > 0.02).sum() >= 2
    assert (found.mixed_apart > 0.02).all()
    assert 0 < found.padding < 1


def test_padding_that_is_typed_is_hidden_by_itself_and_in_a_batch() -> None:
    found = mixed_masks(bundle=BUNDLE, texts=("good [PAD] film", *TEXTS), n_tokens=24)
    assert found.right_apart.max() < 1e-5
    assert found.right_moves.max() < 1e-5


def test_without_padding_both_are_the_same() -> None:
    found = mixed_masks(bundle=small_bundle(), texts=("a glass", "a box"), n_tokens=8)
    assert found.padding == 0
    for moves in (found.right_moves, found.mixed_moves, found.mixed_apart):
        np.testing.assert_allclose(moves, 0, atol=1e-5)


def test_what_cannot_be_mixed_is_named() -> None:
    with pytest.raises(ValueError, match=r"must hold at least 2 texts, which can be re-ordered$"):
        mixed_masks(bundle=BUNDLE, texts=TEXTS[:1], n_tokens=24)
    bundle = small_bundle()
    for model in (Gpt(bundle.config), small_bundle(pad_id=None).model):
        with pytest.raises(ValueError, match=r"must be an encoder with a padding token$"):
            mixed_masks(bundle=Bundle("other", model, bundle.tokenizer), texts=TEXTS, n_tokens=24)
