"""What each rung of the ladder changes, on a text: both ways of computing with a GPT's own weights, and what both cost.

The rungs and their papers are in analysis/gpt/ladder.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.gpt.cache import bytes_kept
from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device
from transformer_core.analysis.gpt.ladder import NAMES, config_at
from transformer_core.analysis.parameter_counts import parts_counted
from transformer_core.analysis.positions.schemes import SCHEMES, same_distance_spread, score_schemes
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig, require_choice, require_index
from transformer_core.layers.blocks import EncoderBlock
from transformer_core.layers.feed_forward import ACTIVATIONS, FeedForward
from transformer_core.layers.initialization import shapes_alone
from transformer_core.models import Gpt
from transformer_core.packed_linear import Linear
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.wiring import Wiring

PLACES = 16  # at which a token stands, to see how its score depends on the place
WEAK = -0.5  # a pre-activation that ReLU drops and GELU keeps in part
LEAST_OF_GELU = -0.17  # GELU gives nothing below -0.16997
BYTES = 4  # of a number in a cache


@dataclass(frozen=True)
class Cost:
    """What a model of the ladder takes.

    Args:
        weights, active: its numbers, and those that compute one token.
        products: multiplications of weights for one more token.
        cache: bytes of keys and values that each token adds.
    """

    weights: int
    active: int
    products: int
    cache: int


@lru_cache(maxsize=32)
def cost_of(config: ModelConfig) -> Cost:
    """Return what a GPT of a config takes; nothing is computed."""
    with shapes_alone():
        model = Gpt(config)
    counts = parts_counted(model, config.n_active_experts)
    mapped = sum(module.weight.numel() for module in model.modules() if isinstance(module, Linear))
    idle = int(counts.counts.sum() - counts.active.sum())
    return Cost(
        weights=int(counts.counts.sum()),
        active=int(counts.active.sum()),
        products=mapped - idle,
        cache=bytes_kept(config, 1, config.kv_heads, BYTES),
    )


@dataclass(frozen=True)
class Measure:
    """One number of a text under a rung's old way and its new one; None where the model has nothing of the kind.

    Args:
        name: of the number, within the rung.
    """

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class BothWays:
    """What a rung changes on a text, and what it changes of the ladder's own models.

    Args:
        measures: on the text.
        below, here: costs of the model below the rung, and on it.
    """

    measures: tuple[Measure, ...]
    below: Cost
    here: Cost


def _layer_norm(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / centred.square().mean(-1, keepdim=True).sqrt()


def _rms_norm(x: Tensor) -> Tensor:
    return x / x.square().mean(-1, keepdim=True).sqrt()


@dataclass(frozen=True, eq=False)
class _Asked:
    """A text, a layer and a place, with what the rungs read of them."""

    prompt: Prompt
    layer: int
    place: int
    learned: Bundle | None

    @property
    def config(self) -> ModelConfig:
        return self.prompt.bundle.config

    def read(self, site: str) -> Tensor:
        """Return a tensor of the text, (pos, ...)."""
        model = gpt_of(self.prompt.bundle)
        _, trace = capture(model, ids_on_device(model, self.prompt.encoding.ids), sites=(site,), until=site)
        return trace[site][0].float().cpu()

    def inside(self, name: str) -> Tensor:
        """Return a tensor of the token in the layer's feed-forward part, (d_ff,)."""
        return self.read(f"decoder.layer{self.layer}.feed_forward.{name}")[self.place]

    @property
    def block(self) -> EncoderBlock:
        """The layer."""
        block = gpt_of(self.prompt.bundle).decoder.stack.layers[self.layer]
        assert isinstance(block, EncoderBlock)
        return block

    @property
    def stream(self) -> Tensor:
        """The residual stream as it enters the layer, (pos, d_model)."""
        return self.read(Wiring(self.config).onto(f"decoder.layer{self.layer}.self_attention"))


def _pre(asked: _Asked) -> list[Measure]:
    """Apply the layer's attention and a plain norm in both orders."""
    x, attention = asked.stream, asked.block.self_attention
    device = next(attention.parameters()).device

    def attend(read: Tensor) -> Tensor:
        return attention(read[None].to(device), causal=True)[0].float().cpu()

    post, pre = _layer_norm(x + attend(x)), x + attend(_layer_norm(x))
    own, behind, before = (one[asked.place] for one in (x, post, pre))
    alike = [float(torch.cosine_similarity(own, one, dim=0)) for one in (behind, before)]
    return [Measure("length", float(behind.norm()), float(before.norm())), Measure("alike", *alike)]


def _spreads(asked: _Asked, before: str, after: str) -> list[Measure]:
    """Put the token at many places, and compare scores of the same distance."""
    found = score_schemes(
        prompt=asked.prompt,
        place=asked.place,
        head=0,
        length=min(PLACES, asked.config.max_len),
        learned=asked.learned,
    )

    def of(scheme: str, values: np.ndarray) -> float | None:
        there = scheme != "learned" or found.learned_from
        return float(values[SCHEMES.index(scheme)]) if there else None

    spread = np.array([same_distance_spread(scores) for scores in found.scores])
    numbers = np.array(found.parameters)
    return [
        Measure("spread", of(before, spread), of(after, spread)),
        Measure("learned", float(numbers[SCHEMES.index(before)]), float(numbers[SCHEMES.index(after)])),
    ]


def _rms(asked: _Asked) -> list[Measure]:
    x = asked.stream[asked.place]
    centred, squares = _layer_norm(x), _rms_norm(x)
    first = int(x.abs().argmax())
    return [
        Measure("mean", float(centred.mean()), float(squares.mean())),
        Measure("largest", float(centred[first]), float(squares[first])),
    ]


def _gelu(asked: _Asked) -> list[Measure]:
    if asked.config.n_experts:  # each has its own
        return [Measure("zeros", None, None), Measure("weak", None, None)]
    inside = asked.inside("pre_activation")
    weak = inside[(inside - WEAK).abs().argmin()]
    relu, gelu = ACTIVATIONS["relu"], ACTIVATIONS["gelu"]
    return [
        Measure("zeros", float((relu(inside) == 0).float().mean()), float((gelu(inside) == 0).float().mean())),
        Measure("weak", float(relu(weak)), float(gelu(weak))),
    ]


def _swiglu(asked: _Asked) -> list[Measure]:
    if asked.config.n_experts or not asked.config.gated:
        return [Measure("strongest", None, None), Measure("turned", None, None)]
    gate, up = asked.inside("pre_activation"), asked.inside("up")
    plain, gated = ACTIVATIONS["gelu"](gate), ACTIVATIONS["silu"](gate) * up
    strongest = int(gated.abs().argmax())
    below = [float((one < LEAST_OF_GELU).float().mean()) for one in (plain, gated)]
    return [Measure("strongest", float(plain[strongest]), float(gated[strongest])), Measure("turned", *below)]


def _kept(asked: _Asked, before: int, after: int) -> list[Measure]:
    length = len(asked.prompt.encoding)
    return [Measure("bytes", *(float(bytes_kept(asked.config, length, heads, BYTES)) for heads in (before, after)))]


def grouped_heads(config: ModelConfig) -> int:
    """Return how many heads of keys and values stand for grouped ones: the model's own, else half of its heads."""
    return config.kv_heads if 1 < config.kv_heads < config.n_heads else max(1, config.n_heads // 2)


def _unbiased(asked: _Asked) -> list[Measure]:
    layer = asked.block.feed_forward
    biases = [one.bias for one in asked.block.modules() if isinstance(one, Linear) and one.bias is not None]
    own = (layer.gate_proj or layer.inner_proj).bias if isinstance(layer, FeedForward) else None
    share = 0.0 if own is None else float(own.abs().mean() / asked.inside("pre_activation").abs().mean())
    return [Measure("count", float(sum(bias.numel() for bias in biases)), 0.0), Measure("share", share, 0.0)]


def _mixture(asked: _Asked) -> list[Measure]:
    """Count a dense layer of the model's sizes, and the rung's experts, whose active ones are as wide together."""
    numbers, rung = (3 if asked.config.gated else 2) * asked.config.d_model * asked.config.d_ff, config_at("mixture")
    router, times = rung.n_experts * asked.config.d_model, rung.n_experts / rung.n_active_experts
    return [
        Measure("read", float(numbers), float(numbers + router)),
        Measure("kept", float(numbers), times * numbers + router),
    ]


WAYS: dict[str, Callable[[_Asked], list[Measure]]] = {
    "pre": _pre,
    "learned": lambda asked: _spreads(asked, "sinusoidal", "learned"),
    "rotary": lambda asked: _spreads(asked, "learned", "rotary"),
    "rms_norm": _rms,
    "gelu": _gelu,
    "swiglu": _swiglu,
    "one_head": lambda asked: _kept(asked, asked.config.n_heads, 1),
    "grouped": lambda asked: _kept(asked, 1, grouped_heads(asked.config)),
    "unbiased": _unbiased,
    "mixture": _mixture,
}


@torch.inference_mode()
def both_ways(*, prompt: Prompt, rung: str, layer: int, place: int, learned: Bundle | None = None) -> BothWays:
    """Compute a token the old way and the new one.

    Args:
        prompt: to a GPT.
        rung: an entry of WAYS.
        layer, place: of the model and of the token, from 0.
        learned: a model with learned positions as wide as this one; without it, they are left out.

    Raises:
        ValueError: the bundle is not a GPT, or there is no such rung, layer or place.
    """
    config = gpt_of(prompt.bundle).config
    require_choice("rung", rung, tuple(WAYS))
    require_index("layer", layer, config.n_layers)
    require_index("place", place, len(prompt.encoding))
    below = NAMES[NAMES.index(rung) - 1]
    return BothWays(
        measures=tuple(WAYS[rung](_Asked(prompt, layer, place, learned))),
        below=cost_of(config_at(below)),
        here=cost_of(config_at(rung)),
    )
