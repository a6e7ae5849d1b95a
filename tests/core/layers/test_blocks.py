"""Blocks, norms and dropout are torch.nn's or their formulas; weights start as documented."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers import torch_twins
from tests.helpers.engine import close, exactly, lively, made, padded_ids, tiny
from transformer_core.layers.blocks import DecoderBlock, EncoderBlock, Stack
from transformer_core.layers.dropout import Dropout, drop
from transformer_core.layers.feed_forward import FeedForward, gelu, gelu_tanh, relu
from transformer_core.layers.initialization import initialize
from transformer_core.layers.masks import causal_mask
from transformer_core.layers.normalization import LayerNorm, UnbiasedNorm, make_norm
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.probe import SILENT, Probe

PATHS = {"fused": lambda: SILENT, "explicit": Probe}
REAL = torch.tensor([[True] * 5, [True, True, True, False, False]])  # (batch, key_pos)
MEMORY_REAL = torch.tensor([[True] * 6, [True, True, True, True, False, False]])

every_order = pytest.mark.parametrize("norm_order", ["pre", "post"])
every_activation = pytest.mark.parametrize("activation", ["relu", "gelu"])
every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)


def built(kind, *more, **changes):
    config = tiny(**changes)
    module = kind(config, *more)
    initialize(module)
    return lively(module), config


def streams() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 5, 16), torch.randn(2, 6, 16)


@every_order
@every_activation
@every_path
@pytest.mark.parametrize("causal", [False, True])
def test_encoder_block_and_stack_are_torchs(norm_order, activation, path, causal):
    x, _ = streams()
    hidden = ~causal_mask(5) if causal else None
    for kind, twin, *more in ((EncoderBlock, torch_twins.encoder_layer), (Stack, torch_twins.stack, EncoderBlock)):
        ours, config = built(kind, *more, norm_order=norm_order, activation=activation)
        padding = {"src_key_padding_mask": ~REAL}
        mask = {"src_mask": hidden} if kind is EncoderBlock else {"mask": hidden}
        expected = twin(ours, config)(x, **padding, **mask)
        got = ours(x, mask=REAL[:, None, None], causal=causal, probe=path())
        close(got[REAL], expected[REAL])


@every_order
@every_activation
@every_path
def test_decoder_block_and_stack_are_torchs(norm_order, activation, path):
    x, memory = streams()
    for kind, twin, *more in ((DecoderBlock, torch_twins.decoder_layer), (Stack, torch_twins.stack, DecoderBlock)):
        ours, config = built(kind, *more, norm_order=norm_order, activation=activation)
        expected = twin(ours, config)(
            x, memory, tgt_mask=~causal_mask(5), tgt_key_padding_mask=~REAL, memory_key_padding_mask=~MEMORY_REAL
        )
        masks = {"mask": REAL[:, None, None], "memory_mask": MEMORY_REAL[:, None, None]}
        close(ours(x, memory, **masks, causal=True, probe=path())[REAL], expected[REAL])


def test_dropout_in_a_block_is_on_in_training_only():
    block, _ = built(EncoderBlock, dropout=0.5)
    x, _ = streams()
    assert torch.equal(block(x), block(x))
    block.train()
    assert not torch.equal(block(x), block(x))


numbers = st.floats(-10, 10, width=32)


def of(activation, x: float) -> float:
    return float(activation(torch.tensor(x, dtype=torch.float64)))


@given(numbers)
def test_activations_are_their_formulas(x):
    assert of(relu, x) == max(0.0, x)
    assert of(gelu, x) == pytest.approx(x * 0.5 * (1 + math.erf(x / math.sqrt(2))), abs=1e-12)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    assert of(gelu_tanh, x) == pytest.approx(0.5 * x * (1 + math.tanh(inner)), abs=1e-12)


def test_an_unknown_activation_is_named():
    message = "activation='swish' is unknown; it must be one of 'relu', 'gelu', 'gelu_tanh', 'silu'"
    with pytest.raises(ValueError, match=exactly(message)):
        FeedForward(6, 10, activation="swish")


@given(st.integers(2, 40), st.floats(1e-8, 0.1), st.floats(-100, 100), st.floats(0.01, 100))
def test_layer_norm_is_torchs(d_model, eps, centre, spread):
    ours, theirs = lively(LayerNorm(d_model, eps=eps)), nn.LayerNorm(d_model, eps=eps)
    theirs.load_state_dict(ours.state_dict())
    x = centre + spread * torch.randn(2, 3, d_model)
    close(ours(x), theirs(x))


@given(st.integers(2, 40), st.floats(1e-8, 0.1))
def test_unbiased_norm_is_its_formula(d_model, eps):
    norm = lively(UnbiasedNorm(d_model, eps=eps))
    x = torch.randn(2, 3, d_model)
    mean = x.sum(-1, keepdim=True) / d_model
    deviation = ((x - mean).square().sum(-1, keepdim=True) / (d_model - 1)).sqrt()
    close(norm(x), norm.weight * (x - mean) / (deviation + eps) + norm.bias, atol=1e-4)


@pytest.mark.parametrize("kind", [LayerNorm, UnbiasedNorm])
def test_edited_parts_are_used(kind):
    norm, x = lively(kind(16)), torch.randn(2, 3, 16)
    deviation = Probe(("inverse_deviation",))
    norm(x, probe=deviation)
    inverse = deviation.trace["inverse_deviation"]
    close(norm(x, probe=Probe(edits={"mean": torch.zeros_like})), x * inverse * norm.weight + norm.bias)
    halved = norm(x, probe=Probe(edits={"inverse_deviation": lambda tensor: tensor / 2}))
    close(halved - norm.bias, (norm(x) - norm.bias) / 2)


@pytest.mark.parametrize("kind", [LayerNorm, UnbiasedNorm])
def test_a_constant_row_is_finite_with_finite_gradients(kind):
    norm, x = kind(16), torch.ones(1, 2, 16, requires_grad=True)
    norm(x).sum().backward()
    close(norm(x), torch.zeros(1, 2, 16))
    assert x.grad.isfinite().all()


def test_an_unknown_norm_is_named():
    message = "norm='batch_norm' is unknown; it must be one of 'layer_norm', 'unbiased', 'rms_norm'"
    with pytest.raises(ValueError, match=exactly(message)):
        make_norm("batch_norm", 8, eps=1e-5)


@pytest.mark.parametrize("probability", [0.1, 0.4, 0.9])
def test_the_share_dropped_is_the_probability_and_the_mean_stays(probability: float) -> None:
    ones = torch.ones(997, 1_003)
    dropped = drop(ones, probability)
    share = round(probability * 256) / 256
    assert float((dropped == 0).float().mean()) == pytest.approx(share, abs=0.002)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.01)
    assert len(dropped.unique()) == 2


def test_every_place_is_decided_on_its_own() -> None:
    dropped = (drop(torch.ones(64, 4_096), 0.5) == 0).double()
    agreement = torch.corrcoef(dropped.T[:16])
    assert float((agreement - torch.eye(16)).abs().max()) < 0.6
    assert float(dropped.mean(0).std()) == pytest.approx(0.5 / 8, rel=0.1)  # of a mean over 64 fair coins


def test_gradients_pass_where_values_do() -> None:
    x = torch.randn(50, 40, requires_grad=True)
    y = drop(x, 0.3)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, y != 0)


def test_evaluation_and_probability_zero_change_nothing() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_the_same_seed_drops_the_same() -> None:
    x = torch.ones(33, 7)
    torch.manual_seed(5)
    once = drop(x, 0.4)
    torch.manual_seed(5)
    assert torch.equal(once, drop(x, 0.4))


def as_the_article_computes(model: Classifier, ids: torch.Tensor, dropout: float) -> torch.Tensor:
    """Return the logits of a listing that drops the sublayers' outputs alone, and fills m AND its transpose with -1e20.

    Its mask is repeated head by head where the config says so.
    """
    config, encoder = model.config, model.encoder
    real, size = ids != 0, ids.shape[1]
    mask = real[:, :, None] & real[:, None, :]
    n_heads, d_head = config.n_heads, config.d_head or 0
    mixed = config.padding_mask == "mixed_heads"
    mask = mask.repeat(n_heads, 1, 1) if mixed else mask.repeat_interleave(n_heads, 0)  # (batch * head, query, key)
    x = encoder.embedding.token.weight[ids] + encoder.embedding.position(size, ids.device)
    for layer in encoder.stack.layers:
        own = layer.self_attention
        query, key, value = (
            proj(x).view(len(ids), size, n_heads, d_head).transpose(1, 2).flatten(0, 1)
            for proj in (own.query_proj, own.key_proj, own.value_proj)
        )
        scores = (query @ key.transpose(1, 2) / math.sqrt(d_head)).masked_fill(~mask, -1e20)
        heads = (scores.softmax(-1) @ value).view(len(ids), n_heads, size, d_head).transpose(1, 2).flatten(2)
        x = layer.self_attention_norm.norm(x + drop(own.output_proj(heads), dropout))
        inside = layer.feed_forward
        inner = relu(inside.inner_proj(x))
        x = layer.feed_forward_norm.norm(x + drop(inside.outer_proj(inner), dropout))
    return model.class_proj(x[:, 0])


@every_path
@pytest.mark.parametrize("padding_mask", ["queries_too", "mixed_heads"])
def test_dropout_of_sublayers_and_a_mask_with_its_transpose_are_the_articles(padding_mask: str, path) -> None:
    choices = {"padding_mask": padding_mask, "dropout_at": "sublayers", "norm_order": "post", "activation": "relu"}
    model, ids = made(Classifier, dropout=0.4, **choices), padded_ids(3, 6)
    close(model(ids, probe=path()), as_the_article_computes(model, ids, 0.0))
    model.train()
    torch.manual_seed(7)
    got = model(ids, probe=Probe())  # with a probe no position is left out, and as many numbers are drawn
    torch.manual_seed(7)
    close(got, as_the_article_computes(model, ids, 0.4))


def test_hiding_queries_too_changes_no_verdict_where_each_head_wears_its_own_mask() -> None:
    ids = padded_ids(3, 6)
    keys, pairs, mixed = (made(Classifier, padding_mask=name)(ids) for name in ("keys", "queries_too", "mixed_heads"))
    close(keys, pairs)
    assert not torch.allclose(keys, mixed, atol=1e-3)


WIDE = {"vocab_size": 500, "d_model": 64}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_token_embeddings_are_small(tied, scale):
    expected = 64**-0.5 if scale else 0.02
    for kind in (Gpt, Translation, Bert):
        model = kind(tiny(**WIDE, tied_output=tied, scale_embeddings=scale))
        embeddings = {name: p for name, p in model.named_parameters() if name.endswith("token.weight")}
        assert len(embeddings) == (2 if kind is Translation else 1)
        for weight in embeddings.values():
            assert weight.std().item() == pytest.approx(expected, rel=0.05)


def test_linear_maps_start_with_glorots_bound_and_no_bias():
    model = Gpt(tiny(**WIDE))
    layer = model.decoder.stack.layers[0].feed_forward.inner_proj
    bound = math.sqrt(6 / sum(layer.weight.shape))
    assert bound * 0.95 < layer.weight.abs().max().item() <= bound
    assert not layer.bias.any()


def test_every_parameter_starts_anew():
    model = Classifier(tiny(positions="learned", scoring="additive", n_segments=2, embedding_norm=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    initialize(model)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("seeded", [True, False])
def test_the_same_seed_gives_the_same_weights(seeded):
    def start(seed: int) -> torch.Tensor:
        torch.manual_seed(0 if seeded else seed)
        model = Gpt(tiny())
        if seeded:
            initialize(model, torch.Generator().manual_seed(seed))
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    assert torch.equal(start(1), start(1))
    assert not torch.equal(start(1), start(2))
