"""One vector before and after its normalisation, by every variant, and with its input scaled.

Ba et al. 2016, eq. 4, with torch's epsilon; Zhang and Sennrich 2019, eq. 4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import read, require_outcome
from transformer_core.analysis.parts import reading_part
from transformer_core.bundle import Bundle
from transformer_core.config import Norm, require_choice, require_index
from transformer_core.layers.blocks import EncoderBlock
from transformer_core.layers.normalization import AnyNorm, RmsNorm, gain_and_bias, make_norm
from transformer_core.probe import Edit
from transformer_core.prompt import Prompt

SUBLAYERS = ("self_attention", "feed_forward", "final")


@dataclass(frozen=True, eq=False)
class NormedVector:
    """A vector of the stream before and after the normalisation that the model applies to it.

    Shapes:
        x, standard, after, scaled_after, gain, bias, and each of others: (d_model)

    Args:
        x: before.
        standard: (x - mean) / sqrt(variance + eps), or x / sqrt(mean square + eps), without gain and bias.
        after: the model's own output; if its norm is "unbiased", that of torch's variant still.
        others: what the other variants give with the same gain and bias, by their names in ModelConfig.
        mean, variance: of x, the variance biased (divided by d).
        deviation: unbiased (divided by d - 1).
        eps: the model's.
        factor: unbiased over torch's, before gain and bias, as measured; `predicted` is sqrt((d - 1) / d).
        scale: what x was multiplied by; scaled_after is the output then.
        moved: greatest |scaled_after - after|.
        recomputed: greatest |output of this page's formula - what the model recorded|.
        norm: which variant the model has.
    """

    x: np.ndarray
    standard: np.ndarray
    after: np.ndarray
    others: Mapping[str, np.ndarray]
    scaled_after: np.ndarray
    gain: np.ndarray
    bias: np.ndarray
    mean: float
    variance: float
    deviation: float
    eps: float
    factor: float
    predicted: float
    scale: float
    moved: float
    recomputed: float
    norm: str

    @property
    def mean_square(self) -> float:
        """The mean of the squares of x."""
        return self.variance + self.mean**2

    def difference(self, other: str) -> float:
        """Return the greatest |after - what another variant gives|."""
        return float(np.abs(self.after - self.others[other]).max())


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
    (gain, bias), eps = (part.float() for part in gain_and_bias(norm)), norm.eps
    shown = variants_of(prompt.bundle.config.norm)

    def made(name: str, vector: Tensor) -> Tensor:
        variant = make_norm(cast("Norm", name), len(gain), eps=eps).requires_grad_(False)
        variant.weight.data = gain
        if isinstance(variant, RmsNorm):
            return variant(vector) + bias
        assert variant.bias is not None
        variant.bias.data = bias
        return variant(vector)

    of_variants = {name: made(name, x) for name in shown}
    after, scaled = of_variants.pop(shown[0]), made(shown[0], scale * x)
    own = of_variants.get(prompt.bundle.config.norm, after)
    variance, deviation = float(x.var(correction=0)), float(x.std())
    centre = 0.0 if isinstance(norm, RmsNorm) else x.mean()
    root = math.sqrt(float((x - centre).square().mean()) + eps)
    return NormedVector(
        x=x.numpy(),
        standard=((x - centre) / root).numpy(),
        after=after.numpy(),
        others={name: other.numpy() for name, other in of_variants.items()},
        scaled_after=scaled.numpy(),
        gain=gain.numpy(),
        bias=bias.numpy(),
        mean=float(x.mean()),
        variance=variance,
        deviation=deviation,
        eps=eps,
        factor=math.sqrt(variance + eps) / (deviation + eps),
        predicted=math.sqrt((len(x) - 1) / len(x)),
        scale=scale,
        moved=float((scaled - after).abs().max()),
        recomputed=float((own - recorded).abs().max()),
        norm=prompt.bundle.config.norm,
    )


def variants_of(norm: str) -> tuple[str, ...]:
    """Return the variants that are shown of a model's norm, the one that stands for its own first."""
    return ("rms_norm", "layer_norm") if norm == "rms_norm" else ("layer_norm", "unbiased", "rms_norm")


def norm_at(bundle: Bundle, layer: int, sublayer: str) -> tuple[AnyNorm, str, str]:
    """Return a normalisation of the stack that reads the text and the sites of what goes in and what comes out.

    Of a sublayer with two, it is the first.

    Raises:
        ValueError: there is no such layer or sublayer, or no norm: a final one, since the model is post-norm, or one
            before the first layer's attention.
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
    if norm is None:
        raise ValueError(f"layer={layer} has no norm before its {sublayer} in {bundle.name}; the embedding has one")
    return norm, bundle.reader.wiring.normalises(scope), f"{scope}.normalized"


@dataclass(frozen=True, eq=False)
class OtherNorm:
    """What a model predicts with another variant of the normalisation in every place, the weights untouched.

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


def other_norm(*, prompt: Prompt, other: str) -> OtherNorm | None:
    """Read a text once more with another variant of the normalisation, None for a model with RMSNorm.

    (Its inside has no mean that could be taken away.)

    Args:
        other: a variant that is not the model's own.

    Raises:
        ValueError: the model predicts nothing from the text.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    require_outcome(bundle, encoding)
    config = bundle.config
    if config.norm == "rms_norm":
        return None
    before = read(bundle, encoding, sites=()).probabilities
    edits = as_variant(config.norm, other, config.d_model, config.norm_eps)
    after = read(bundle, encoding, sites=(), edits=edits).probabilities
    winner = int(before.argmax())
    return OtherNorm(before, after, config.norm, winner, 100 * float(after[winner] - before[winner]))


def as_variant(norm: str, other: str, d_model: int, eps: float) -> Mapping[str, Edit]:
    """Return the edits that turn what one variant takes away and multiplies by into what another would.

    Args:
        norm: "layer_norm" or "unbiased"; other: another variant.
    """
    ratio, means = d_model / (d_model - 1), []

    def variance_of(inverse: Tensor) -> Tensor:
        root = 1 / inverse.cpu().double()
        if norm == "unbiased":
            return (root - eps).clamp(min=0).square() / ratio
        return (root.square() - eps).clamp(min=0)

    def forget_mean(mean: Tensor) -> Tensor:
        means[:] = [mean.cpu().double()]
        return torch.zeros_like(mean)

    def multiply(inverse: Tensor) -> Tensor:
        variance = variance_of(inverse)
        if other == "unbiased":
            made = 1 / ((variance * ratio).sqrt() + eps)
        else:
            made = (variance + (means[0].square() if other == "rms_norm" else 0.0) + eps).rsqrt()
        return made.to(inverse.dtype).to(inverse.device)

    edits: dict[str, Edit] = {"*.mean": forget_mean} if other == "rms_norm" else {}
    return edits | {"*.inverse_deviation": multiply}
