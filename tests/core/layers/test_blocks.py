"""Blocks and stacks are torch.nn's after copying the weights, and sums of what their sublayers put out."""

import pytest
import torch

from tests.helpers import torch_twins
from tests.helpers.engine import close, lively, tiny
from transformer_core.layers.blocks import DecoderBlock, EncoderBlock, Stack
from transformer_core.layers.initialization import initialize
from transformer_core.layers.masks import causal_mask
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
            x,
            memory,
            tgt_mask=~causal_mask(5),
            tgt_key_padding_mask=~REAL,
            memory_key_padding_mask=~MEMORY_REAL,
        )
        masks = {"mask": REAL[:, None, None], "memory_mask": MEMORY_REAL[:, None, None]}
        close(ours(x, memory, **masks, causal=True, probe=path())[REAL], expected[REAL])


@pytest.mark.parametrize("kind", [EncoderBlock, DecoderBlock])
def test_a_pre_norm_block_adds_what_its_sublayers_put_out(kind):
    block, _ = built(kind, norm_order="pre")
    x, memory = streams()
    probe = Probe()
    result = block(x, *(memory,) * (kind is DecoderBlock), probe=probe)
    outputs = [tensor for name, tensor in probe.trace.items() if name.endswith(".output")]
    assert len(outputs) == (3 if kind is DecoderBlock else 2)
    close(x + sum(outputs), result)
    assert torch.equal(probe.trace["residual"], result)


@pytest.mark.parametrize("kind", [EncoderBlock, DecoderBlock])
def test_a_post_norm_block_normalises_every_sum(kind):
    block, _ = built(kind, norm_order="post")
    x, memory = streams()
    probe = Probe()
    result = block(x, *(memory,) * (kind is DecoderBlock), probe=probe)
    stream = x
    for scope in ("self_attention", "cross_attention", "feed_forward"):
        if f"{scope}.output" not in probe.trace:
            continue
        close(probe.trace[f"{scope}.residual"], stream + probe.trace[f"{scope}.output"])
        stream = probe.trace[f"{scope}.norm.normalized"]
    assert torch.equal(stream, result)


@every_order
def test_without_residuals_a_sublayer_replaces_the_stream(norm_order):
    block, _ = built(EncoderBlock, norm_order=norm_order, residual=False)
    probe = Probe()
    block(streams()[0], probe=probe)
    for scope in ("self_attention", "feed_forward"):
        assert torch.equal(probe.trace[f"{scope}.residual"], probe.trace[f"{scope}.output"])


@every_order
def test_only_a_pre_norm_stack_ends_in_a_normalisation(norm_order):
    stack, _ = built(Stack, EncoderBlock, norm_order=norm_order)
    probe = Probe()
    result = stack(streams()[0], probe=probe)
    last = probe.trace["final_norm.normalized" if norm_order == "pre" else "layer1.residual"]
    assert torch.equal(last, result)
    assert (stack.final_norm is None) == (norm_order == "post")


def test_dropout_in_a_block_is_on_in_training_only():
    block, _ = built(EncoderBlock, dropout=0.5)
    x, _ = streams()
    assert torch.equal(block(x), block(x))
    block.train()
    assert not torch.equal(block(x), block(x))
