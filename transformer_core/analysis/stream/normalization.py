"""One vector before and after its normalisation, by both variants, and with its input scaled.

Ba et al. 2016, eq. 4, with torch's epsilon.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from torch import Tensor

from transformer_core.analysis.outcome import read, require_outcome
from transformer_core.analysis.parts import reading_part
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice, require_index
from transformer_core.layers.blocks import EncoderBlock
from transformer_core.layers.normalization import AnyNorm, LayerNorm, UnbiasedNorm
from transformer_core.probe import Edit
from transformer_core.prompt import Prompt

SUBLAYERS = ("self_attention", "feed_forward", "final")


@dataclass(frozen=True, eq=False)
class NormedVector:
    """A vector of the stream before and after the normalisation that the model applies to it.

    Shapes:
        x, standard, after, unbiased, scaled_after, gain, bias: (d_model)

    Args:
        x: before.
        standard: (x - mean) / sqrt(variance + eps), without gain and bias.
        after: the model's own output; `unbiased` what the other variant gives with the same gain and bias: if the
            model's norm is "unbiased" itself, `after` is still torch's variant.
        mean, variance: of x, the variance biased (divided by d).
        deviation: unbiased (divided by d - 1).
        eps: the model's.
        difference: greatest |after - unbiased|.
        factor: unbiased over torch's, before gain and bias, as measured; `predicted` is sqrt((d - 1) / d).
        scale: what x was multiplied by; scaled_after is the output then.
        moved: greatest |scaled_after - after|.
        recomputed: greatest |output of this page's formula - what the model recorded|.
        norm: which variant the model has.
    """

    x: np.ndarray
    standard: np.ndarray
    after: np.ndarray
    unbiased: np.ndarray
    scaled_after: np.ndarray
    gain: np.ndarray
    bias: np.ndarray
    mean: float
    variance: float
    deviation: float
    eps: float
    difference: float
    factor: float
    predicted: float
    scale: float
    moved: float
    recomputed: float
    norm: str


def normed_vector(*, prompt: Prompt, layer: int, sublayer: str, token: int, scale: float) -> NormedVector:
    """Return one token's vector before and after a normalisation of the model.

    Args:
        prompt: to a model of a kind that reads one text.
        layer: from 0; without meaning for the final norm.
        sublayer: whose norm: "self_attention", "feed_forward", or "final", the pre-norm stack's last one.
        token: from 0.
        scale: what the vector is multiplied by to see whether its output moves; not 0.

    Raises:
        ValueError: there is no such layer, sublayer or token.
    """
    norm, before_site, after_site = norm_at(prompt.bundle, layer, sublayer)
    encoding = prompt.encoding
    require_index("token", token, len(encoding))
    trace = read(prompt.bundle, encoding, sites=(before_site, after_site)).trace
    x, recorded = (trace[site][0, token].float().cpu() for site in (before_site, after_site))  # (d_model)
    gain, bias = norm.weight.detach().float().cpu(), norm.bias.detach().float().cpu()
    torch_norm, other = _filled(LayerNorm, gain, bias, norm.eps), _filled(UnbiasedNorm, gain, bias, norm.eps)
    after, unbiased, scaled = torch_norm(x), other(x), torch_norm(scale * x)
    own = after if isinstance(norm, LayerNorm) else unbiased
    variance, deviation = float(x.var(correction=0)), float(x.std())
    return NormedVector(
        x=x.numpy(),
        standard=((x - x.mean()) / math.sqrt(variance + norm.eps)).numpy(),
        after=after.numpy(),
        unbiased=unbiased.numpy(),
        scaled_after=scaled.numpy(),
        gain=gain.numpy(),
        bias=bias.numpy(),
        mean=float(x.mean()),
        variance=variance,
        deviation=deviation,
        eps=norm.eps,
        difference=float((after - unbiased).abs().max()),
        factor=math.sqrt(variance + norm.eps) / (deviation + norm.eps),
        predicted=math.sqrt((len(x) - 1) / len(x)),
        scale=scale,
        moved=float((scaled - after).abs().max()),
        recomputed=float((own - recorded).abs().max()),
        norm=prompt.bundle.config.norm,
    )


def norm_at(bundle: Bundle, layer: int, sublayer: str) -> tuple[AnyNorm, str, str]:
    """Return a normalisation of the stack that reads the text and the sites of what goes in and what comes out.

    Of a sublayer with two, it is the first.

    Raises:
        ValueError: there is no such layer or sublayer, or no final norm since the model is post-norm.
    """
    require_choice("sublayer", sublayer, SUBLAYERS)
    config, stack = bundle.config, reading_part(bundle.model).stack
    require_index("layer", layer, config.n_layers)
    if sublayer == "final":
        if stack.final_norm is None:
            raise ValueError(
                "sublayer='final' needs a pre-norm model; a post-norm stack ends in its last sublayer's norm"
            )
        return stack.final_norm, bundle.reader.stages[-1], bundle.reader.site("final_norm.normalized")
    block = cast(EncoderBlock, stack.layers[layer])
    around = block.self_attention_norm if sublayer == "self_attention" else block.feed_forward_norm
    scope = bundle.reader.wiring.norm(bundle.reader.site(f"layer{layer}.{sublayer}"))
    norm = around.norm or around.output_norm
    assert norm is not None
    return norm, bundle.reader.wiring.normalises(scope), f"{scope}.normalized"


@dataclass(frozen=True, eq=False)
class OtherNorm:
    """What a model predicts with the other variant of the normalisation in every place, the weights untouched.

    Shapes:
        before, after: (outcome), see outcome.py

    Args:
        used: the model's own variant.
        moved: of the likeliest outcome's probability, in percentage points.
    """

    before: np.ndarray
    after: np.ndarray
    used: str
    winner: int
    moved: float


def other_norm(*, prompt: Prompt) -> OtherNorm:
    """Read a text once more with the other variant of the normalisation.

    Raises:
        ValueError: the model predicts nothing from the text.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    require_outcome(bundle, encoding)
    before = np.array(read(bundle, encoding, sites=()).probabilities)
    edits = other_deviation(bundle.config.norm, bundle.config.d_model, bundle.config.norm_eps)
    after = np.array(read(bundle, encoding, sites=(), edits=edits).probabilities)
    winner = int(before.argmax())
    return OtherNorm(before, after, bundle.config.norm, winner, 100 * float(after[winner] - before[winner]))


def other_deviation(norm: str, d_model: int, eps: float) -> Mapping[str, Edit]:
    """Return the edit that turns what one variant multiplies by into what the other would."""
    ratio = d_model / (d_model - 1)

    def to_unbiased(inverse: Tensor) -> Tensor:
        variance = (inverse.cpu().double() ** -2 - eps).clamp(min=0)
        return (1 / ((variance * ratio).sqrt() + eps)).to(inverse.dtype).to(inverse.device)

    def to_torch(inverse: Tensor) -> Tensor:
        deviation = (1 / inverse.cpu().double() - eps).clamp(min=0)
        return (deviation.square() / ratio + eps).rsqrt().to(inverse.dtype).to(inverse.device)

    return {"*.inverse_deviation": to_unbiased if norm == "layer_norm" else to_torch}


def _filled(
    kind: type[LayerNorm] | type[UnbiasedNorm], gain: Tensor, bias: Tensor, eps: float
) -> LayerNorm | UnbiasedNorm:
    norm = kind(len(gain), eps=eps).requires_grad_(False)
    norm.weight.copy_(gain)
    norm.bias.copy_(bias)
    return norm
