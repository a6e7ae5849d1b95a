"""torch.nn's modules with copies of our weights; their boolean masks are the opposite of ours."""

import torch
from torch import nn

from transformer_core.config import ModelConfig
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.blocks import DecoderBlock, EncoderBlock, Stack
from transformer_core.layers.feed_forward import FeedForward


@torch.no_grad()
def _copy(ours: nn.Module, theirs: nn.Module) -> None:
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> nn.MultiheadAttention:
    """Copy into nn.MultiheadAttention, which keeps the three projections in one matrix."""
    projections = (ours.query_proj, ours.key_proj, ours.value_proj)
    theirs.in_proj_weight.copy_(torch.cat([proj.weight for proj in projections]))
    theirs.in_proj_bias.copy_(torch.cat([proj.bias for proj in projections]))
    _copy(ours.output_proj, theirs.out_proj)
    return theirs.eval()


def copy_feed_forward(ours: FeedForward, theirs: nn.Module) -> None:
    """Copy into the linear1 and linear2 of a layer of torch.nn."""
    _copy(ours.inner_proj, theirs.linear1)
    _copy(ours.outer_proj, theirs.linear2)


def _options(config: ModelConfig) -> dict:
    return {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": config.dropout,
        "activation": config.activation,
        "layer_norm_eps": config.norm_eps,
        "batch_first": True,
        "norm_first": config.norm_order == "pre",
    }


def encoder_layer(ours: EncoderBlock, config: ModelConfig) -> nn.TransformerEncoderLayer:
    """Make nn.TransformerEncoderLayer with the weights of our block."""
    theirs = nn.TransformerEncoderLayer(**_options(config))
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    _copy(ours.self_attention_norm.norm, theirs.norm1)
    _copy(ours.feed_forward_norm.norm, theirs.norm2)
    return theirs.eval()


def decoder_layer(ours: DecoderBlock, config: ModelConfig) -> nn.TransformerDecoderLayer:
    """Make nn.TransformerDecoderLayer with the weights of our block."""
    theirs = nn.TransformerDecoderLayer(**_options(config))
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    _copy(ours.self_attention_norm.norm, theirs.norm1)
    _copy(ours.cross_attention_norm.norm, theirs.norm2)
    _copy(ours.feed_forward_norm.norm, theirs.norm3)
    return theirs.eval()


def stack(ours: Stack, config: ModelConfig) -> nn.TransformerEncoder | nn.TransformerDecoder:
    """Make nn.TransformerEncoder or nn.TransformerDecoder with the weights of our stack."""
    decodes = isinstance(ours.layers[0], DecoderBlock)
    layers = [(decoder_layer if decodes else encoder_layer)(layer, config) for layer in ours.layers]
    norm = None
    if ours.final_norm is not None:
        norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        _copy(ours.final_norm, norm)
    if decodes:
        theirs = nn.TransformerDecoder(layers[0], len(layers), norm)
    else:
        theirs = nn.TransformerEncoder(layers[0], len(layers), norm, enable_nested_tensor=False)
    theirs.layers = nn.ModuleList(layers)
    return theirs.eval()
