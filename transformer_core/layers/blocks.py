"""Encoder and decoder blocks, pre- or post-norm, and the stack of them.

Vaswani et al. 2017, section 3.1 (post-norm); Xiong et al. 2020 (pre-norm).
Read next: transformer_core/layers/initialization.py
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.cache import KeyValueCache, LayerCache
from transformer_core.layers.dropout import Dropout
from transformer_core.layers.feed_forward import FeedForward
from transformer_core.layers.normalization import make_norm
from transformer_core.probe import SILENT, Probe


class AddNorm(nn.Module):
    """The residual sum and the normalisation around one sublayer.

    post: norm(x + dropout(sublayer(x))) (the paper); pre: x + dropout(sublayer(norm(x))).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = make_norm(config.norm, config.d_model, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.norm_order, self.residual = config.norm_order, config.residual

    def forward(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], *, first: int | None = None, probe: Probe = SILENT
    ) -> Tensor:
        """Map (batch, pos, d_model) to the same shape, or to the first positions that the sublayer gives."""
        normed = self.norm(x, probe=probe.at("norm")) if self.norm_order == "pre" else x
        output = sublayer(normed)
        if self.training:
            output = self.dropout(output)
        x = x if first is None else x[:, :first]
        x = probe.tap("residual", x + output if self.residual else output)
        return self.norm(x, probe=probe.at("norm")) if self.norm_order == "post" else x


def feed_forward_from(config: ModelConfig) -> FeedForward:
    """Make the feed-forward layer that a config describes."""
    return FeedForward(
        config.d_model, config.d_ff, activation=config.activation, dropout=config.dropout, bias=config.bias
    )


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward; with causal=True it is the block of a decoder without cross-attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention.from_config(config)
        self.self_attention_norm = AddNorm(config)
        self.feed_forward = feed_forward_from(config)
        self.feed_forward_norm = AddNorm(config)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        first: int | None = None,
        cache: LayerCache | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Map (batch, pos, d_model) to the same shape, or to its first positions; mask as in MultiHeadAttention.

        Args:
            first: how many positions are wanted, counted from the start; they still attend to all. None wants all.
            cache: what this block kept of the positions before x; not together with `first`.
        """
        attention_probe, feed_forward_probe = probe.at("self_attention"), probe.at("feed_forward")
        kept = None if cache is None else cache.self_attention

        def attend(normed: Tensor) -> Tensor:
            query, memory = (normed, None) if first is None else (normed[:, :first], normed)
            return self.self_attention(query, memory, mask=mask, causal=causal, cache=kept, probe=attention_probe)

        x = self.self_attention_norm(x, attend, first=first, probe=attention_probe)
        x = self.feed_forward_norm(
            x, lambda normed: self.feed_forward(normed, probe=feed_forward_probe), probe=feed_forward_probe
        )
        return probe.tap("residual", x)


class DecoderBlock(nn.Module):
    """Self-attention, then cross-attention to the encoder's memory, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention.from_config(config)
        self.self_attention_norm = AddNorm(config)
        self.cross_attention = MultiHeadAttention.from_config(config, cross=True)
        self.cross_attention_norm = AddNorm(config)
        self.feed_forward = feed_forward_from(config)
        self.feed_forward_norm = AddNorm(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: bool = True,
        cache: LayerCache | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Map target (batch, query_pos, d_model) and memory (batch, key_pos, d_model) to the target's shape."""
        self_probe, cross_probe = probe.at("self_attention"), probe.at("cross_attention")
        feed_forward_probe = probe.at("feed_forward")
        kept, crossed = (None, None) if cache is None else (cache.self_attention, cache.cross_attention)
        x = self.self_attention_norm(
            x,
            lambda normed: self.self_attention(normed, mask=mask, causal=causal, cache=kept, probe=self_probe),
            probe=self_probe,
        )
        x = self.cross_attention_norm(
            x,
            lambda normed: self.cross_attention(normed, memory, mask=memory_mask, cache=crossed, probe=cross_probe),
            probe=cross_probe,
        )
        x = self.feed_forward_norm(
            x, lambda normed: self.feed_forward(normed, probe=feed_forward_probe), probe=feed_forward_probe
        )
        return probe.tap("residual", x)


class Stack(nn.Module):
    """n_layers blocks in a row; a pre-norm stack ends in one more normalisation (Xiong et al. 2020, figure 1)."""

    def __init__(self, config: ModelConfig, block: type[EncoderBlock] | type[DecoderBlock]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(block(config) for _ in range(config.n_layers))
        pre = config.norm_order == "pre"
        self.final_norm = make_norm(config.norm, config.d_model, eps=config.norm_eps) if pre else None

    def forward(
        self,
        x: Tensor,
        *memory: Tensor,
        first: int | None = None,
        cache: KeyValueCache | None = None,
        probe: Probe = SILENT,
        **options: Tensor | bool | None,
    ) -> Tensor:
        """Map (batch, pos, d_model) to the same shape, or to its first positions.

        Memory and options go to every block, `first` to the last one alone, since nothing reads what it leaves out;
        of the cache, each block gets its own.
        """
        last = len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            wanted: dict[str, Any] = {"first": first} if first is not None and index == last else {}
            if cache is not None:
                wanted["cache"] = cache.layers[index]
            x = layer(x, *memory, probe=probe.at(f"layer{index}"), **options, **wanted)
        return x if self.final_norm is None else self.final_norm(x, probe=probe.at("final_norm"))
