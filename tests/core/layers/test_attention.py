"""Attention is the paper's formula, on both paths, and never NaN."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers.engine import close, exactly, lively
from tests.helpers.torch_twins import copy_attention
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.masks import causal_mask
from transformer_core.probe import SILENT, Probe, capture

BATCH, HEADS, QUERY, KEY, D_MODEL = 2, 3, 4, 5, 12
PATHS = {"fused": lambda: SILENT, "explicit": Probe}
VARIANTS = {
    "plain": {},
    "unscaled": {"scale": False},
    "additive": {"scoring": "additive"},
    "no_projections": {"projections": False},
    "shared_query_key": {"share_query_key": True},
    "shared_key_value": {"share_key_value": True},
    "all_shared": {"share_query_key": True, "share_key_value": True},
    "wide_heads": {"d_head": 8},
    "no_bias": {"bias": False},
    "alibi": {"positions": "alibi"},
    "rotary": {"positions": "rotary"},
}


def attention(**options) -> MultiHeadAttention:
    torch.manual_seed(0)
    layer = MultiHeadAttention(D_MODEL, HEADS, **options)
    if layer.additive_scores is not None:
        nn.init.normal_(layer.additive_scores.weight)
    return lively(layer)


def sequence(length: int, seed: int = 0, batch: int = BATCH) -> torch.Tensor:
    return torch.randn(batch, length, D_MODEL, generator=torch.Generator().manual_seed(seed))


def probed(layer: MultiHeadAttention, *inputs, **options) -> tuple[torch.Tensor, Probe]:
    probe = Probe()
    return layer(*inputs, probe=probe, **options), probe


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("causal", [False, True])
def test_parity_with_torch(path, causal):
    ours = attention()
    theirs = copy_attention(ours, nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True))
    x, real = sequence(QUERY), torch.tensor([[True, True, True, True], [True, True, False, False]])
    hidden = ~causal_mask(QUERY) if causal else None
    expected, weights = theirs(x, x, x, key_padding_mask=~real, attn_mask=hidden, average_attn_weights=False)
    close(ours(x, mask=real[:, None, None], causal=causal, probe=path()), expected)
    close(probed(ours, x, mask=real[:, None, None], causal=causal)[1].trace["weights"], weights)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_parity_with_torch_across_two_sequences(path):
    ours = attention()
    theirs = copy_attention(ours, nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True))
    x, memory = sequence(QUERY), sequence(KEY, 1)
    mask = torch.rand(BATCH, HEADS, QUERY, KEY, generator=torch.Generator().manual_seed(0)) > 0.4
    mask[..., 0] = True
    expected, _ = theirs(x, memory, memory, attn_mask=~mask.flatten(0, 1), need_weights=False)
    close(ours(x, memory, mask=mask, probe=path()), expected)


@given(
    st.sampled_from(sorted(VARIANTS)),
    st.integers(0, 4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.booleans(),
    st.integers(0, 99),
)
def test_both_paths_agree_for_every_mask_that_broadcasts(variant, dims, ones, causal, seed):
    layer = attention(**VARIANTS[variant])
    full = (BATCH, HEADS, QUERY, KEY)
    shape = [1 if one else size for one, size in zip(ones, full, strict=True)][4 - dims :]
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) > 0.5
    x, memory = sequence(QUERY, seed), sequence(KEY, seed + 1)
    with torch.no_grad():
        silent = layer(x, memory, mask=mask, causal=causal)
        explicit, probe = probed(layer, x, memory, mask=mask, causal=causal)
    close(explicit, silent)
    weights = probe.trace["weights"]
    allowed = mask.expand(full) & (causal_mask(QUERY, KEY) if causal else True)
    assert (weights >= 0).all()
    assert (weights[~allowed] == 0).all()
    close(weights.sum(-1), allowed.any(-1).float())


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_wholly_masked_row_gives_nothing_and_finite_gradients(options, path):
    layer, x = attention(**options), sequence(QUERY).requires_grad_()
    mask = torch.ones(BATCH, 1, QUERY, QUERY, dtype=torch.bool)
    mask[0], mask[1, :, 2] = False, False
    seen = Probe(("heads",)) if path is PATHS["fused"] else Probe()
    output = layer(x, mask=mask, probe=seen)
    output.square().sum().backward()
    heads = seen.trace["heads"]
    assert (heads[0] == 0).all()
    assert (heads[1, :, 2] == 0).all()
    assert heads[1, :, 1].any()
    if "weights" in seen.trace:
        assert (seen.trace["weights"][~mask.expand(BATCH, HEADS, QUERY, QUERY)] == 0).all()
    assert output.isfinite().all()
    assert x.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_a_row_that_an_edit_hides_wholly_gives_nothing():
    layer, x = attention(), sequence(QUERY)
    probe = Probe(edits={"masked_scores": lambda scores: scores.fill_(float("-inf"))})
    close(layer(x, probe=probe), layer.output_proj.bias.expand(BATCH, QUERY, D_MODEL))
    assert (probe.trace["weights"] == 0).all()


def test_an_edit_of_masked_scores_can_open_what_the_mask_hides():
    layer, x = attention(), sequence(QUERY)
    probe = Probe(edits={"masked_scores": torch.zeros_like})
    layer(x, causal=True, probe=probe)
    close(probe.trace["weights"], torch.full((BATCH, HEADS, QUERY, QUERY), 1 / QUERY))


def test_scores_are_divided_by_the_root_of_d_head_or_not():
    scaled, unscaled = attention(d_head=8), attention(d_head=8, scale=False)
    x = sequence(QUERY)
    ratio = probed(unscaled, x)[1].trace["scores"] / probed(scaled, x)[1].trace["scores"]
    close(ratio, torch.full_like(ratio, 8**0.5), atol=1e-3)


def test_without_projections_heads_mix_the_input_itself():
    layer, x = attention(projections=False), sequence(QUERY)
    output, probe = probed(layer, x)
    assert not list(layer.parameters())
    for leaf in ("query", "key", "value"):
        assert torch.equal(probe.trace[leaf].transpose(1, 2).flatten(2), x)
    close(output, (probe.trace["weights"] @ probe.trace["value"]).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("query_key", [False, True])
@pytest.mark.parametrize("key_value", [False, True])
def test_shared_projections_give_the_same_vectors(query_key, key_value):
    trace = probed(attention(share_query_key=query_key, share_key_value=key_value), sequence(QUERY))[1].trace
    assert torch.equal(trace["query"], trace["key"]) == query_key
    assert torch.equal(trace["key"], trace["value"]) == key_value


def test_d_head_is_free():
    layer = MultiHeadAttention(128, 8, d_head=64)
    output, probe = probed(layer, torch.randn(1, 3, 128))
    assert probe.trace["heads"].shape == (1, 8, 3, 64)
    assert layer.query_proj.weight.shape == (512, 128)
    assert output.shape == (1, 3, 128)


def test_causal_outputs_do_not_depend_on_later_positions():
    layer, x = attention(), sequence(QUERY)
    changed = x.clone()
    changed[:, 2:] += 1.0
    for path in PATHS.values():
        assert torch.equal(*(layer(each, causal=True, probe=path())[:, :2] for each in (x, changed)))
        assert not torch.allclose(*(layer(each, probe=path())[:, :2] for each in (x, changed)))


def test_dropout_is_on_in_training_only_and_after_the_recorded_weights():
    layer, x = attention(dropout=0.5), sequence(QUERY)
    close(layer(x), attention()(x))
    close(probed(layer, x)[0], attention()(x))
    output, probe = probed(layer.train(), x)
    close(probe.trace["weights"].sum(-1), torch.ones(BATCH, HEADS, QUERY))
    assert not torch.allclose(output, attention()(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "d_model=10 must be divisible by n_heads=4, or d_head must be given"),
        ({"scoring": "cosine"}, "scoring='cosine' is unknown; it must be one of 'dot_product', 'additive'"),
        ({"d_head": 3, "projections": False}, "n_heads=4 times d_head=3 must be d_model=10 with projections=False"),
    ],
)
def test_errors_name_the_values(options, message):
    with pytest.raises(ValueError, match=exactly(message)):
        MultiHeadAttention(10, 4, **options)


def test_an_edit_of_the_scores_that_hides_a_row_gives_zeros():
    attention = MultiHeadAttention(8, 2).eval()
    edits = {"scores": lambda scores: torch.full_like(scores, float("-inf"))}
    _, trace = capture(attention, torch.randn(1, 3, 8), sites=("weights", "heads"), edits=edits)
    assert trace["weights"].abs().max() == 0
    assert trace["heads"].abs().max() == 0
