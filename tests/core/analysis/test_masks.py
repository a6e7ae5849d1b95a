"""Masks: written and read, put on a trained model, mixed among sentences, and left out in training."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import refusals
from tests.helpers.engine import made, shipped, small_bundle, small_tokenizer
from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.masks.batch_masks import batch_masks, mask_polarity
from transformer_core.analysis.masks.codes import MOST_PAINTED, mask_from_code, painted_code, painted_mask
from transformer_core.analysis.masks.masked_head import (
    mask_edits,
    masked_head,
    masked_row,
    padded_encoding,
    read_under,
    replace_mask,
)
from transformer_core.analysis.masks.mixed_masks import mixed_masks
from transformer_core.analysis.masks.training_without_mask import mask_cheating
from transformer_core.bundle import Bundle
from transformer_core.config import PADDED
from transformer_core.layers.masks import repeated_by_head
from transformer_core.models import Classifier, Gpt
from transformer_core.probe import capture
from transformer_core.prompt import Prompt

BUNDLE = shipped("sentiment")
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
    assert mask_from_code("padding", IDS, PADDED).all()
    assert torch.equal(mask_from_code("prefix.0", IDS, 0), mask_from_code("causal", IDS, 0))


TEXT = "The plot was thin but I loved every minute"
SIZE = len(BUNDLE.tokenizer.encode(TEXT))
TEXTS = ("I loved it.", "Not a dull scene in two hours.", "[PAD] good")


def under(mask: str, text: str = TEXT, **changes):
    arguments = {"pads": 0, "layer": 0, "head": 2, "everywhere": True} | changes
    return masked_head(prompt=Prompt(BUNDLE, text, 64), mask=mask, **arguments)


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
    encoding = padded_encoding(Prompt(BUNDLE, TEXT, 64), pads=3)
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
@pytest.mark.parametrize(("kind", "own"), [(Gpt, "causal"), (Classifier, "everything")])
def test_a_window_hides_what_it_hides_under_any_mask(kind: type, own: str, everywhere: bool) -> None:
    labels = ("a", "b") if kind is Classifier else ()
    bundle = Bundle("windows", made(kind, windows=(2, None)), small_tokenizer(), labels)
    asked = {"prompt": Prompt(bundle, "a glass box a bell", 12), "pads": 0, "head": 1, "everywhere": everywhere}
    size = len(asked["prompt"].encoding)
    near = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) < 2
    for layer, seen in enumerate((near, np.ones_like(near))):
        found = masked_head(**asked, mask=own, layer=layer)
        np.testing.assert_allclose(found.before, found.after, atol=1e-6)  # it is the model's own mask
        np.testing.assert_allclose(found.steps.weights, found.weights_before, atol=1e-6)
        shown = masked_head(**asked, mask="everything", layer=layer)
        assert (shown.steps.weights > 0).tolist() == seen.tolist()
        assert np.isneginf(shown.steps.masked_scores[~seen]).all()
        everything = torch.ones(size, size, dtype=torch.bool)
        edits = mask_edits(bundle, everything, None if everywhere else layer)
        edited, _ = read_under(bundle, asked["prompt"].encoding, edits=edits)
        np.testing.assert_allclose(edited, shown.after, atol=1e-6)
    alone = masked_head(**asked, mask="window.0", layer=1)  # in all layers, or in the second alone
    outcome = bundle.reader.outcome(asked["prompt"].encoding)
    assert outcome is not None
    place = outcome.place or 0
    near_by = {"gpt": [place - 1, place], "classifier": [place, place + 1]}[bundle.kind]
    assert np.flatnonzero(alone.reach).tolist() == ([place] if everywhere else near_by)


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_wholly_masked_row_by_each_convention(everywhere: bool) -> None:
    mask = torch.ones(SIZE, SIZE, dtype=torch.bool)
    mask[0] = mask[4] = False
    place = {"layer": 1, "head": 0, "everywhere": everywhere}
    asked = {"prompt": Prompt(BUNDLE, TEXT, 64), "pads": 0, "mask": painted_code(mask)} | place
    row = masked_row(row=4, **asked)
    assert not row.zeros.any()
    assert not row.torch_attention.any()
    assert np.isnan(row.softmax).all()
    np.testing.assert_allclose(row.large, 1 / SIZE, atol=1e-7)
    assert np.isnan(row.verdict_softmax).all()
    np.testing.assert_array_equal(row.verdict_zeros, masked_head(**asked).after)
    assert not np.allclose(row.verdict_large, row.verdict_zeros, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match=r"row=3 must be a row that is wholly masked, one of \[0, 4\]"):
        masked_row(row=3, **asked)


def test_masks_of_a_batch() -> None:
    found = batch_masks(bundle=BUNDLE, texts=TEXTS, source=0, target=1, n_tokens=24)
    real = found.token_ids[0] != BUNDLE.config.pad_id
    size = len(real)
    np.testing.assert_array_equal(found.self_padding, np.tile(real, (size, 1)))
    np.testing.assert_array_equal(found.self_pairs, np.outer(real, real))
    np.testing.assert_array_equal(found.added_pairs, np.where(np.outer(real, real), 0, np.float32(-1e20)))
    np.testing.assert_array_equal(found.self_causal, np.tril(np.ones((size, size), bool)))
    np.testing.assert_array_equal(found.self_both, found.self_padding & found.self_causal)
    np.testing.assert_array_equal(found.cross, np.tile(real, (found.real[1].sum(), 1)))
    for name in ("padding", "causal", "both"):
        boolean, added = getattr(found, f"self_{name}"), getattr(found, f"added_{name}")
        np.testing.assert_array_equal(added, np.where(boolean, 0.0, -np.inf))


@pytest.mark.parametrize("causal", [True, False])
def test_torchs_attention_agrees_with_the_opposite_mask_and_with_ours_it_does_not(causal: bool) -> None:
    found = mask_polarity(bundle=BUNDLE, texts=TEXTS[:2], n_tokens=24, causal=causal)
    assert found.difference < 1e-5
    assert found.undefined or found.mistaken_difference > 0.01


MIXED = ("I loved it.", "Not a dull scene in two hours.", "The ending was slow, but superb.")


def test_rows_are_those_of_the_repeat_in_the_tutorials() -> None:
    real = torch.tensor([[True, False, False], [True, True, True]])
    slipped = real[:, None].repeat(4, 1, 1)  # (head * batch, 1, pos), where the scores are (batch * head, ...)
    right = real[:, None].repeat_interleave(4, 0)
    assert repeated_by_head(real[:, None], 4).flatten(0, 1).equal(slipped)
    assert not slipped.equal(right)
    worn = mixed_masks(bundle=small_bundle(), texts=("a glass box", "a"), n_tokens=8).worn
    assert worn.tolist() == [[0, 1], [0, 1]]


def test_reordering_moves_sentences_in_the_variant_alone() -> None:
    found = mixed_masks(bundle=BUNDLE, texts=MIXED, n_tokens=24)
    assert found.right_moves.max() < 1e-5
    assert found.right_apart.max() < 1e-5
    assert (found.mixed_moves > 0.02).sum() >= 2
    assert (found.mixed_apart > 0.02).all()
    assert found.right_pairs_moves.max() < 1e-5
    assert found.right_pairs_apart.max() < 1e-5
    assert found.mixed_pairs_apart.max() > 0.3
    assert 0 < found.padding < 1


def test_padding_that_is_typed_is_hidden_by_itself_and_in_a_batch() -> None:
    found = mixed_masks(bundle=BUNDLE, texts=("good [PAD] film", *MIXED), n_tokens=24)
    assert found.right_apart.max() < 1e-5
    assert found.right_moves.max() < 1e-5


def test_without_padding_both_are_the_same() -> None:
    found = mixed_masks(bundle=small_bundle(), texts=("a glass", "a box"), n_tokens=8)
    assert found.padding == 0
    for moves in (found.right_moves, found.mixed_moves, found.mixed_apart):
        np.testing.assert_allclose(moves, 0, atol=1e-5)


@pytest.mark.nightly
def test_the_cheater_peeks_and_pays_for_it_under_the_mask() -> None:
    found = mask_cheating(language="en", steps=60, seed=1)
    assert found.cheater.held_out[-1] < found.honest.held_out[-1]
    assert found.cheater.held_out_masked[-1] > found.honest.held_out[-1]
    assert found.prompt
    assert found.honest.written != found.cheater.written
    again = mask_cheating(language="en", steps=60, seed=1)
    for name, array in arrays_of(found).items():
        np.testing.assert_array_equal(array, arrays_of(again)[name], err_msg=name)


def test_two_runs_that_differ_in_the_mask_alone_start_alike_and_only_the_honest_one_never_peeks() -> None:
    found = mask_cheating(language="en", steps=12, seed=1)
    assert found.honest.loss[0] == pytest.approx(found.cheater.loss[0], rel=0.01)
    np.testing.assert_allclose(found.honest.held_out, found.honest.held_out_masked, atol=1e-5)
    assert (np.abs(found.cheater.held_out - found.cheater.held_out_masked) > 1e-4).any()


def of_model(model: torch.nn.Module) -> dict:
    """Return what mixed_masks takes, of another model."""
    return {"bundle": Bundle("other", model, small_bundle().tokenizer), "texts": MIXED, "n_tokens": 24}


BATCH = {"bundle": BUNDLE, "texts": TEXTS, "source": 0, "target": 1, "n_tokens": 24}
REFUSED = [
    *(
        (lambda shape=s: painted_code(torch.ones(shape, shape, dtype=torch.bool)), "must be square, from 1 to 64")
        for s in (65, 0)
    ),
    (lambda: painted_code(torch.ones(3, 4, dtype=torch.bool)), "must be square, from 1 to 64"),
    (lambda: mask_from_code("3.iIA", IDS, 0), "size 3 was painted for 3 tokens; there are 8"),
    (lambda: batch_masks(**BATCH | {"target": 3}), "target=3 must be from 0 to 2"),
    (lambda: batch_masks(**BATCH | {"texts": ("a", " ")}), "none that is empty"),
    (lambda: mixed_masks(bundle=BUNDLE, texts=MIXED[:1], n_tokens=24), "must hold at least 2 texts"),
    (lambda: mixed_masks(**of_model(Gpt(small_bundle().config))), "must be an encoder with a padding token"),
    (lambda: mixed_masks(**of_model(small_bundle(pad_id=None).model)), "must be an encoder with a padding token"),
    *(
        (lambda steps=steps: mask_cheating(language="en", steps=steps, seed=0), f"steps={steps} must be from 12 to 400")
        for steps in (0, 11, 401)
    ),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
