"""Encoder and decoder blocks, normalised before, after or around their sublayers, and the stack of them.

Vaswani et al. 2017, section 3.1 (post-norm); Xiong et al. 2020 (pre-norm); both sublayers at once: Wang and Komatsuzaki
2021, GPT-J.
Read next: transformer_core/layers/initialization.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.cache import KeyValueCache, LayerCache
from transformer_core.layers.dropout import Dropout
from transformer_core.layers.feed_forward import feed_forward_from
from transformer_core.layers.masks import HIDDEN
from transformer_core.layers.normalization import AnyNorm, norm_of
from transformer_core.layers.positions import RelativeBias
from transformer_core.probe import SILENT, Probe


@dataclass(frozen=True, eq=False)
class Stream:
    """The residual stream at one place of a stack, from which a forward pass goes on: nothing below is computed.

    Shapes:
        residual: (batch, pos, d_model)

    Args:
        layer: from 0.
        residual: as it enters that layer (its site is what Wiring.entering names, or the ``layerN.residual``
            below it), or, where `attended`, the sum after its self-attention (``layerN.self_attention.residual``).
        attended: see residual.
    """

    layer: int
    residual: Tensor
    attended: bool = False

    def entering(self, token_ids: Tensor, config: ModelConfig) -> Tensor:
        """Return the residual, which takes the place of what the embedding makes of token_ids.

        Raises:
            ValueError: no such layer, a residual of another shape than these ids and this config need, or `attended`
                where both sublayers read what enters the layer.
        """
        if self.attended and config.parallel:
            raise ValueError("stream.attended=True must be False with parallel=True: both sublayers read one stream")
        if not 0 <= self.layer < config.n_layers:
            raise ValueError(f"stream.layer={self.layer} must be from 0 to {config.n_layers - 1}")
        needed = (*token_ids.shape, config.d_model)
        if self.residual.shape != needed:
            raise ValueError(f"stream.residual has shape {tuple(self.residual.shape)}; it must have {needed}")
        return self.residual


class AddNorm(nn.Module):
    """The residual sum and the normalisation around one sublayer.

    post: norm(x + dropout(sublayer(x))) (the paper); pre: x + dropout(sublayer(norm(x))); both: x +
    dropout(norm(sublayer(norm(x)))); output: x + dropout(norm(sublayer(x))).

    Args:
        first: it is around the first layer's attention, which may have no norm (first_attention_norm).
    """

    def __init__(self, config: ModelConfig, *, first: bool = False) -> None:
        super().__init__()
        normed = config.norm_order != "output" and not (first and not config.first_attention_norm)
        self.norm: AnyNorm | None = norm_of(config) if normed else None
        self.output_norm: AnyNorm | None = norm_of(config) if config.norms_output else None
        self.dropout = Dropout(config.dropout)
        self.norm_order, self.norms_input, self.residual = config.norm_order, config.norms_input, config.residual

    def forward(
        self,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        *,
        onto: Tensor | None = None,
        wanted: slice | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Map (batch, pos, d_model) to the same shape, or to the wanted positions that the sublayer gives.

        Args:
            onto: what the sublayer's output is added to, by default x.
        """
        output = sublayer(self.norm(x, probe=probe.at("norm")) if self.norm is not None and self.norms_input else x)
        if self.output_norm is not None:
            output = self.output_norm(output, probe=probe.at("output_norm"))
        if self.training:
            output = self.dropout(output)
        if onto is None:
            onto = x if wanted is None else x[:, wanted]
        return self.after(probe.tap("residual", onto + output if self.residual else output), probe=probe)

    def after(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Map the residual sum (batch, pos, d_model) to what the next sublayer reads."""
        return self.norm(x, probe=probe.at("norm")) if self.norm is not None and self.norm_order == "post" else x


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward; with causal=True it is the block of a decoder without cross-attention."""

    def __init__(self, config: ModelConfig, layer: int = 0) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention.from_config(config, layer)
        self.self_attention_norm = AddNorm(config, first=layer == 0)
        self.feed_forward = feed_forward_from(config)
        self.feed_forward_norm = AddNorm(config)
        self.parallel = config.parallel

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        hidden_score: float = HIDDEN,
        wanted: slice | None = None,
        attended: bool = False,
        cache: LayerCache | None = None,
        probe: Probe = SILENT,
    ) -> Tensor:
        """Map (batch, pos, d_model) to the same shape, or to some of its positions.

        mask, causal and hidden_score are as in MultiHeadAttention.

        Args:
            wanted: the positions wanted; they still attend to all. None wants all.
            attended: x is the sum after this block's self-attention already.
            cache: what this block kept of the positions before x; not together with `wanted`.
        """
        attention_probe, feed_forward_probe = probe.at("self_attention"), probe.at("feed_forward")
        kept = None if cache is None else cache.self_attention

        def attend(normed: Tensor) -> Tensor:
            return self.self_attention(
                normed,
                mask=mask,
                causal=causal,
                hidden_score=hidden_score,
                cache=kept,
                queries=wanted,
                probe=attention_probe,
            )

        entering = x if wanted is None else x[:, wanted]
        if attended:
            x = self.self_attention_norm.after(entering, probe=attention_probe)
        else:
            x = self.self_attention_norm(x, attend, wanted=wanted, probe=attention_probe)
        x = self.feed_forward_norm(
            entering if self.parallel else x,
            lambda normed: self.feed_forward(normed, probe=feed_forward_probe),
            onto=x,
            probe=feed_forward_probe,
        )
        return probe.tap("residual", x)


class DecoderBlock(nn.Module):
    """Self-attention, then cross-attention to the encoder's memory, then feed-forward."""

    def __init__(self, config: ModelConfig, layer: int = 0) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention.from_config(config, layer)
        self.self_attention_norm = AddNorm(config, first=layer == 0)
        if config.parallel:
            raise ValueError(
                "parallel=True must be False beside cross-attention, which reads what self-attention wrote"
            )
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
    """n_layers blocks in a row, and one more normalisation but in post-norm order (Xiong et al. 2020, figure 1).

    Shared layers are one and the same block at every place, so that its parameters count once, and are changed and
    trained in all layers at once. With relative positions all layers hold one RelativeBias.

    Args:
        both_sides: positions see later ones, too, which a RelativeBias tells from earlier ones.
    """

    def __init__(
        self, config: ModelConfig, block: type[EncoderBlock] | type[DecoderBlock], *, both_sides: bool = True
    ) -> None:
        super().__init__()
        blocks = [block(config, layer) for layer in range(1 if config.shared_layers else config.n_layers)]
        self.layers = nn.ModuleList(blocks * (config.n_layers // len(blocks)))
        if config.positions == "relative":
            sizes = config.n_heads, config.relative_buckets, config.relative_distance
            relative_bias = RelativeBias(*sizes, both_sides=both_sides)
            for one in blocks:
                one.self_attention.relative_bias = relative_bias
        ends = config.norm_order != "post"
        self.final_norm = norm_of(config) if ends else None

    def forward(
        self,
        x: Tensor,
        *memory: Tensor,
        wanted: slice | None = None,
        stream: Stream | None = None,
        cache: KeyValueCache | None = None,
        probe: Probe = SILENT,
        **options: Tensor | float | None,
    ) -> Tensor:
        """Map (batch, pos, d_model) to the same shape, or to the wanted positions.

        Memory and options go to every block, `wanted` to the last one alone, since nothing reads what it leaves out;
        of the cache, each block gets its own. With a stream, the blocks below it are left out; x is its residual.
        """
        start = 0 if stream is None else stream.layer
        for index, layer in enumerate(self.layers):
            if index < start:
                continue
            own: dict[str, Any] = {} if cache is None else {"cache": cache.layers[index]}
            if wanted is not None and index == len(self.layers) - 1:
                own["wanted"] = wanted
            if stream is not None and stream.attended and index == start:
                own["attended"] = True
            x = layer(x, *memory, probe=probe.at(f"layer{index}"), **options, **own)
        return x if self.final_norm is None else self.final_norm(x, probe=probe.at("final_norm"))
