"""Attention is the paper's formula, on both paths, under every mask, and never NaN."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers.models.t5.modeling_t5 import T5Attention

from tests.helpers.engine import close, exactly, lively, made, padded_ids
from tests.helpers.torch_twins import copy_attention
from transformer_core.config import PADDED
from transformer_core.layers.attention import MultiHeadAttention, masked_softmax
from transformer_core.layers.masks import additive_mask, causal_mask, check_mask, combined_mask, padding_mask
from transformer_core.layers.positions import distance_buckets
from transformer_core.models import Encoder, MaskedDecoder
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


@pytest.mark.parametrize("query_key", [False, True])
@pytest.mark.parametrize("key_value", [False, True])
def test_shared_projections_give_the_same_vectors(query_key, key_value):
    trace = probed(attention(share_query_key=query_key, share_key_value=key_value), sequence(QUERY))[1].trace
    assert torch.equal(trace["query"], trace["key"]) == query_key
    assert torch.equal(trace["key"], trace["value"]) == key_value


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


@given(st.lists(st.lists(st.floats(-50, 50) | st.just(-math.inf), min_size=4, max_size=4), min_size=1, max_size=5))
def test_rows_of_masked_softmax_sum_to_one_or_are_nothing(rows):
    scores = torch.tensor(rows, requires_grad=True)
    weights = masked_softmax(scores)
    some = (scores > -math.inf).any(-1)
    close(weights.sum(-1), some.float())
    assert (weights[scores == -math.inf] == 0).all()
    close(weights[some], scores[some].softmax(-1))


def test_without_hidden_pairs_there_is_nothing_to_look_for():
    scores = torch.randn(2, 3, 4, 5)
    assert torch.equal(masked_softmax(scores, some_hidden=False), masked_softmax(scores))


IDS = torch.tensor([[5, 6, 0, 0], [5, 6, 7, 0]])
MISFIT = "it must broadcast to (batch, head, query_pos, key_pos) = (2, 3, 4, 5)"


def test_padding_is_hidden_from_every_query():
    mask = padding_mask(IDS, 0)
    assert mask.shape == (2, 1, 1, 4)
    assert mask[:, 0, 0].tolist() == [[True, True, False, False], [True, True, True, False]]


@pytest.mark.parametrize(("ids", "padding"), [(IDS, PADDED), (IDS[:, :2], 0), (IDS, 9)])
def test_no_padding_needs_no_mask(ids, padding):
    assert padding_mask(ids, padding) is None


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


@given(st.integers(2, 16), st.integers(1, 200), st.booleans())
def test_distances_fall_into_the_buckets_of_theirs(half: int, more: int, both_sides: bool) -> None:
    buckets, most = 2 * half, half + more
    ahead = torch.arange(40)[None] - torch.arange(40)[:, None]
    expected = T5Attention._relative_position_bucket(ahead, both_sides, buckets, most)
    found = distance_buckets(40, 40, buckets, most, both_sides=both_sides)
    assert torch.equal(found, expected)
    assert torch.equal(distance_buckets(3, 40, buckets, most, both_sides=both_sides), found[-3:])


@pytest.mark.parametrize("kind", [Encoder, MaskedDecoder])
def test_all_layers_of_a_stack_share_one_relative_bias(kind: type) -> None:
    model = made(kind, positions="relative", relative_buckets=8, relative_distance=6)
    first, second = (layer.self_attention.relative_bias for layer in model.stack.layers)
    assert first is second
    assert first.both_sides == (kind is Encoder)
    named = [name for name, _ in model.named_parameters() if "relative_bias" in name]
    assert named == ["stack.layers.0.self_attention.relative_bias.weight"]
    _, trace = capture(model, padded_ids(2, 5), sites=("*position_bias",))
    biases = list(trace.items())
    assert len(biases) == 2
    for _, bias in biases:
        assert torch.equal(bias[:, 1:, 1:], bias[:, :-1, :-1])  # by distance alone
        close(bias[:, 0, 0], first.weight[0])
