"""Masks put on a trained model: weights renormalise, what is hidden cannot matter, and empty rows are as said."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers.browser import BUNDLE
from transformer_core.analysis.masks.batch_masks import batch_masks, mask_polarity
from transformer_core.analysis.masks.codes import mask_from_code, painted_code
from transformer_core.analysis.masks.masked_head import (
    masked_head,
    masked_row,
    padded_encoding,
    read_under,
    replace_mask,
)
from transformer_core.probe import capture

TEXT = "The plot was thin but I loved every minute"
SIZE = len(BUNDLE.tokenizer.encode(TEXT))
TEXTS = ("I loved it.", "Not a dull scene in two hours.", "[PAD] good")


def under(mask: str, **changes):
    arguments = {"text": TEXT, "n_tokens": 64, "pads": 0, "layer": 0, "head": 2, "everywhere": True} | changes
    return masked_head(bundle=BUNDLE, mask=mask, **arguments)


def some_mask(seed: int = 0) -> torch.Tensor:
    return torch.rand(SIZE, SIZE, generator=torch.Generator().manual_seed(seed)) < 0.4


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("mask", ["causal", "window.1", "prefix.3", painted_code(some_mask())])
def test_in_the_first_layer_the_weights_that_are_left_share_out_the_whole(mask: str, everywhere: bool) -> None:
    found = under(mask, everywhere=everywhere)
    kept = found.weights_before * found.mask
    sums = kept.sum(1, keepdims=True)
    np.testing.assert_allclose(found.steps.weights, np.divide(kept, sums, where=sums > 0, out=kept * 0), atol=1e-5)
    assert np.isneginf(found.steps.masked_scores[~found.mask]).all()
    assert found.wholly_masked == tuple(np.flatnonzero(~found.mask.any(1)))


def test_everything_open_is_the_models_own_mask_where_nothing_is_padding() -> None:
    assert under("everything").after == pytest.approx(under("everything").before, abs=1e-6)
    assert under("padding", pads=4).after == pytest.approx(under("everything").before, abs=1e-5)
    assert under("everything", pads=4).after != pytest.approx(under("everything").before, abs=1e-3)


def test_edits_in_every_layer_do_what_the_models_own_door_does() -> None:
    mask = some_mask(1)
    encoding = padded_encoding(BUNDLE, TEXT, n_tokens=64, pads=3)
    mask = F.pad(mask, (0, 3, 0, 3), value=True)  # padding may be attended to here, against the model's own mask
    own, _ = read_under(BUNDLE, encoding, mask)
    edited, _ = read_under(BUNDLE, encoding, edits=replace_mask("*.self_attention", mask))
    assert edited == pytest.approx(own, abs=1e-6)


@pytest.mark.parametrize(("mask", "count"), [("causal", 1), ("window.1", 5), ("prefix.3", 3), ("everything", SIZE)])
def test_what_cannot_be_heard_cannot_move_the_verdict(mask: str, count: int) -> None:
    found = under(mask)
    assert found.reach.sum() == count
    ids = torch.tensor([BUNDLE.tokenizer.encode(TEXT).ids])
    other = torch.where(torch.tensor(found.reach.astype(bool)), ids, 500)
    options = {"mask": mask_from_code(mask, ids[0].tolist(), 0), "sites": ("class_logits",)}
    before, after = (capture(BUNDLE.model, given, **options)[0] for given in (ids, other))
    torch.testing.assert_close(before, after, rtol=0, atol=1e-6)


def test_a_mask_in_one_layer_leaves_every_token_heard() -> None:
    assert under("causal", everywhere=False, layer=1).reach.all()
    assert under("everything", pads=2).reach.sum() == SIZE + 2


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_wholly_masked_row_by_each_convention(everywhere: bool) -> None:
    mask = torch.ones(SIZE, SIZE, dtype=torch.bool)
    mask[0] = mask[4] = False
    place = {"layer": 1, "head": 0, "everywhere": everywhere}
    asked = {"text": TEXT, "n_tokens": 64, "pads": 0, "mask": painted_code(mask)} | place
    row = masked_row(bundle=BUNDLE, row=4, **asked)
    assert not row.zeros.any()
    assert not row.torch_attention.any()
    assert np.isnan(row.softmax).all()
    np.testing.assert_allclose(row.large, 1 / SIZE, atol=1e-7)
    assert np.isnan(row.verdict_softmax).all()
    assert row.verdict_zeros == masked_head(bundle=BUNDLE, **asked).after
    assert row.verdict_large != pytest.approx(row.verdict_zeros, abs=1e-6)
    with pytest.raises(ValueError, match=r"row=3 must be a row that is wholly masked, one of \[0, 4\]"):
        masked_row(bundle=BUNDLE, row=3, **asked)


def test_masks_of_a_batch() -> None:
    found = batch_masks(bundle=BUNDLE, texts=TEXTS, source=0, target=1, n_tokens=24)
    real = found.token_ids[0] != BUNDLE.config.pad_id
    size = len(real)
    np.testing.assert_array_equal(found.self_padding, np.tile(real, (size, 1)))
    np.testing.assert_array_equal(found.self_causal, np.tril(np.ones((size, size), bool)))
    np.testing.assert_array_equal(found.self_both, found.self_padding & found.self_causal)
    np.testing.assert_array_equal(found.cross, np.tile(real, (found.real[1].sum(), 1)))
    for name in ("padding", "causal", "both"):
        boolean, added = getattr(found, f"self_{name}"), getattr(found, f"added_{name}")
        np.testing.assert_array_equal(added, np.where(boolean, 0.0, -np.inf))
    with pytest.raises(ValueError, match="target=3 must be from 0 to 2"):
        batch_masks(bundle=BUNDLE, texts=TEXTS, source=0, target=3, n_tokens=24)
    with pytest.raises(ValueError, match="none that is empty"):
        batch_masks(bundle=BUNDLE, texts=("a", " "), source=0, target=1, n_tokens=24)


@pytest.mark.parametrize("causal", [True, False])
def test_torchs_attention_agrees_with_the_opposite_mask_and_with_ours_it_does_not(causal: bool) -> None:
    found = mask_polarity(bundle=BUNDLE, texts=TEXTS[:2], n_tokens=24, causal=causal)
    assert found.difference < 1e-5
    assert found.undefined or found.mistaken_difference > 0.01
