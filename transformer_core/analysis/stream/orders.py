"""Two orders of the norm: the stream of a post-norm model beside that of a pre-norm one, over the same text.

Post-norm: norm(x + f(x)) (Vaswani et al. 2017, section 3.1); pre-norm: x + f(norm(x)) (Xiong et al. 2020, figure 1).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.stream.normalization import norm_at
from transformer_core.analysis.stream.residual_sum import (
    StreamGrowth,
    around,
    growth_in,
    stream_trace,
    sublayers_of,
    vectors_at,
)
from transformer_core.bundle import Bundle
from transformer_core.config import NormOrder, require_choice, require_index
from transformer_core.layers.normalization import LayerNorm, RmsNorm, UnbiasedNorm, gain_and_bias
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace

GROWN = 1.1  # from here on a stream counts as longer than its embedding
STEPS = {
    "post": ("input", "written", "sum", "standard", "normed"),
    "pre": ("input", "standard", "normed", "written", "sum"),
}


@dataclass(frozen=True, eq=False)
class OrderedStream:
    """The stream of one model over one text.

    Shapes:
        sums, standard: (sublayer, pos); handed_on: (pos)

    Args:
        model: its name.
        tokens: labels of what it read, one a position.
        growth: lengths of the stream by stage, and how much each sublayer writes.
        sums: length of x + f before any norm; in a pre-norm model that is the stream.
        standard: length of what each sublayer's norm makes, before gain and bias.
        handed_on: length of what the stack returns: in a pre-norm model it is after one last norm.
        d_model: width of the stream.
        level: the length that a norm sets any vector to before gain and bias where eps is small beside the variance:
            the root of `inside`, which is d_model, and d_model - 1 for the unbiased variant.
        off: greatest |standard - level|.
        first, last: mean length over positions at the embedding and after the last sublayer; `grown` is last / first.
        least, most: of the mean lengths after the sublayers.
        added: mean over sublayers and positions of what is written, relative to the stream that it is added to.
    """

    model: str
    tokens: tuple[str, ...]
    growth: StreamGrowth
    sums: np.ndarray
    standard: np.ndarray
    handed_on: np.ndarray
    d_model: int
    inside: int
    level: float
    off: float
    first: float
    last: float
    grown: float
    least: float
    most: float
    added: float


@dataclass(frozen=True, eq=False)
class TwoOrders:
    """The streams of two models over one text.

    Args:
        outcome: in which the stream is at least a tenth longer after the last sublayer than at the embedding: "post",
            "pre", "both" or "neither".
    """

    post: OrderedStream
    pre: OrderedStream
    outcome: str


def two_orders(*, post: Bundle, pre: Bundle, text: str, n_tokens: int) -> TwoOrders:
    """Measure the stream of a post-norm model and that of a pre-norm one over the same text.

    Args:
        post, pre: of any kind whose stack reads a text; of a model that translates it is the encoder.
        n_tokens: most tokens of the text to read; a model with fewer positions reads as many as it has.

    Raises:
        ValueError: a model has the other norm order, or reads none of the text.
    """
    found = {
        "post": _measured(Prompt(post, text, n_tokens), "post"),
        "pre": _measured(Prompt(pre, text, n_tokens), "pre"),
    }
    grown = [order for order, stream in found.items() if stream.grown >= GROWN]
    return TwoOrders(found["post"], found["pre"], "both" if len(grown) == 2 else grown[0] if grown else "neither")


def encoded_for(prompt: Prompt) -> Encoding:
    """Return a text as a model reads it, cut where its positions end.

    Raises:
        ValueError: it reads none of the text.
    """
    encoding = prompt.fitting.encoding
    if not len(encoding):
        raise ValueError(f"text={prompt.text[:40]!r} has no token that {prompt.bundle.name!r} knows")
    return encoding


def matching_token(encoding: Encoding, place: int, other: Encoding) -> int:
    """Return the place in another encoding of the same text that shares most characters with a token, else is nearest.

    Raises:
        ValueError: there is no such token.
    """
    require_index("place", place, len(encoding))
    start, end = encoding.offsets[place]
    own = other.own or range(len(other))
    return max(own, key=lambda there: min(end, other.offsets[there][1]) - max(start, other.offsets[there][0]))


def _measured(prompt: Prompt, order: NormOrder) -> OrderedStream:
    bundle = prompt.bundle
    config = bundle.config
    if config.norm_order != order:
        raise ValueError(f"{order}={bundle.name!r} has norm_order={config.norm_order!r}; it must be {order!r}")
    encoding = encoded_for(prompt)
    trace = stream_trace(bundle, encoding)
    growth = growth_in(bundle, trace)
    sums, standard = [], []
    for layer, sublayer in sublayers_of(bundle):
        _, before, inverse = _norm_with_input(bundle, trace, layer, sublayer)
        standard.append(((before - before.mean(-1, keepdim=True)) * inverse).norm(dim=-1))
        sums.append(around(bundle, trace, layer, sublayer)[2].norm(dim=-1))
    inside = config.d_model - (config.norm == "unbiased")
    lengths = growth.lengths.mean(1)
    out = bundle.reader.site("final_norm.normalized" if order == "pre" else f"layer{config.n_layers - 1}.residual")
    standards = torch.stack(standard).numpy()
    return OrderedStream(
        model=bundle.name,
        tokens=encoding.labels,
        growth=growth,
        sums=torch.stack(sums).numpy(),
        standard=standards,
        handed_on=vectors_at(trace, out).norm(dim=-1).numpy(),
        d_model=config.d_model,
        inside=inside,
        level=math.sqrt(inside),
        off=float(np.abs(standards - math.sqrt(inside)).max()),
        first=float(lengths[0]),
        last=float(lengths[-1]),
        grown=float(lengths[-1] / max(lengths[0], 1e-12)),
        least=float(lengths[1:].min()),
        most=float(lengths[1:].max()),
        added=float(growth.written.mean()),
    )


def _norm_with_input(
    bundle: Bundle, trace: Trace, layer: int, sublayer: str
) -> tuple[LayerNorm | UnbiasedNorm, Tensor, Tensor]:
    """Return a sublayer's norm, what goes into it (pos, d_model), and the recorded inverse deviation (pos, one)."""
    norm, before, after = norm_at(bundle, layer, sublayer)
    if isinstance(norm, RmsNorm):
        raise ValueError(f"bundle={bundle.name!r} has norm='rms_norm', which takes no mean away; it must take one away")
    return norm, vectors_at(trace, before), vectors_at(trace, after.replace("normalized", "inverse_deviation"))


@dataclass(frozen=True, eq=False)
class SublayerSteps:
    """One token's way through one sublayer, step by step, as the model recorded it.

    Shapes:
        vectors: (step, d_model); lengths, means, deviations: (step); gain, bias: (d_model)

    Args:
        steps: names of the rows in the order of computation: "input" is the stream x, "written" what the sublayer
            adds, "sum" both together, "standard" the norm's output before gain and bias, "normed" after them.
        deviations: root of the variance, which is biased (divided by d).
        normed_mean, normed_deviation: of the vector that is normalised; the deviation is what it is divided by, eps
            included.
        added: greatest |input + written - sum|.
        recomputed: greatest |gain * standard + bias - normed|, of numbers that the formula gives and that the model
            recorded.
        residual: whether the model has residual connections.
    """

    steps: tuple[str, ...]
    vectors: np.ndarray
    lengths: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    gain: np.ndarray
    bias: np.ndarray
    normed_mean: float
    normed_deviation: float
    added: float
    recomputed: float
    residual: bool


def sublayer_steps(*, prompt: Prompt, layer: int, sublayer: str, token: int) -> SublayerSteps:
    """Follow one token through one sublayer and its norm.

    Args:
        prompt: text and most tokens as of two_orders.
        layer: from 0.
        sublayer: "self_attention" or "feed_forward".
        token: from 0.

    Raises:
        ValueError: there is no such layer, sublayer or token.
    """
    bundle = prompt.bundle
    require_choice("sublayer", sublayer, ("self_attention", "feed_forward"))
    require_index("layer", layer, bundle.config.n_layers)
    encoding = encoded_for(prompt)
    require_index("token", token, len(encoding))
    trace = stream_trace(bundle, encoding)
    x, written, total = (vectors[token] for vectors in around(bundle, trace, layer, sublayer))  # (d_model)
    norm, before, _ = _norm_with_input(bundle, trace, layer, sublayer)
    into = before[token]  # (d_model)
    mean, deviation = into.mean(), _divisor(norm, into)
    standard = (into - mean) / deviation
    gain, bias = (part.double() for part in gain_and_bias(norm))
    normed = vectors_at(trace, norm_at(bundle, layer, sublayer)[2])[token]
    there = {"input": x, "written": written, "sum": total, "standard": standard, "normed": normed}
    steps = STEPS[bundle.config.norm_order]
    vectors = torch.stack([there[step] for step in steps])  # (step, d_model)
    return SublayerSteps(
        steps=steps,
        vectors=vectors.numpy(),
        lengths=vectors.norm(dim=-1).numpy(),
        means=vectors.mean(-1).numpy(),
        deviations=vectors.std(-1, correction=0).numpy(),
        gain=gain.numpy(),
        bias=bias.numpy(),
        normed_mean=float(mean),
        normed_deviation=float(deviation),
        added=float((x * bundle.config.residual + written - total).abs().max()),
        recomputed=float((gain * standard + bias - normed).abs().max()),
        residual=bundle.config.residual,
    )


def _divisor(norm: LayerNorm | UnbiasedNorm, x: Tensor) -> Tensor:
    if isinstance(norm, LayerNorm):
        return (x.var(correction=0) + norm.eps).sqrt()
    return x.std() + norm.eps
