"""The residual stream as a sum: what every part wrote into it, for any order of the norms.

Pre-norm: the stream is the plain sum of what was written. Post-norm (Vaswani et al. 2017, section 3.1): every norm
rescales all that was written before it; with its measured mean and deviation as constants it is a linear map, so the
sum still holds, each part scaled by the norms after it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.parts import reading_part
from transformer_core.analysis.stream.normalization import norm_at
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.layers.normalization import RmsNorm, gain_and_bias
from transformer_core.probe import Probe
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace


@dataclass(frozen=True, eq=False)
class StreamSum:
    """What each part wrote into one token's stream, and the stream that the model recorded.

    Shapes:
        contributions: (part, d_model); total, stream: (d_model); norms: (part)

    Args:
        parts: names such as "token_embedding", "0.self_attention", and for post-norm "norm_shifts", the means and
            biases of all norms together.
        contributions: as they stand in the final stream.
        total: their sum; stream: the last layer's output as the model recorded it, before a final norm.
        difference: greatest |total - stream|.
        inner_difference: greatest |input + output - residual| over every sublayer and every token, before any norm.
        norms: length of each contribution.
        norm_order, residual: of the model.
    """

    parts: tuple[str, ...]
    contributions: np.ndarray
    total: np.ndarray
    stream: np.ndarray
    difference: float
    inner_difference: float
    norms: np.ndarray
    norm_order: str
    residual: bool


@dataclass(frozen=True, eq=False)
class StreamGrowth:
    """The length of every token's stream by depth, and the share of every sublayer.

    Shapes:
        lengths: (stage, pos); written, cosines: (sublayer, pos)

    Args:
        stages: "embedding", then names such as "0.self_attention".
        lengths: Euclidean norm of the stream after each stage (post-norm: after its norm).
        sublayers: names such as "0.self_attention".
        written: length of what each sublayer adds over the length of the stream that it is added to.
        cosines: between what is added and that stream.
    """

    stages: tuple[str, ...]
    lengths: np.ndarray
    sublayers: tuple[str, ...]
    written: np.ndarray
    cosines: np.ndarray


@torch.inference_mode()
def stream_trace(bundle: Bundle, encoding: Encoding) -> Trace:
    """Record the stream of the stack that reads a text; of a model that translates, the encoder's."""
    probe = Probe((bundle.reader.site("embedding.*"), "*.residual", "*.output", "*norm.*"))
    reading_part(bundle.model)(one_text(bundle, encoding), probe=probe.at(bundle.reader.stack))
    return probe.trace


def vectors_at(trace: Trace, site: str) -> Tensor:
    """Return what was recorded of the one text that was read, in 64 bits. # (pos, d_model)"""
    return trace[site][0].cpu().double()


def sublayers_of(bundle: Bundle) -> list[tuple[int, str]]:
    """Return layer and name of every sublayer, in order."""
    return [(layer, name) for layer in range(bundle.config.n_layers) for name in ("self_attention", "feed_forward")]


def around(bundle: Bundle, trace: Trace, layer: int, sublayer: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return what a sublayer adds to, what it adds, and their sum as recorded, each (pos, d_model)."""
    scope, wiring = bundle.reader.site(f"layer{layer}.{sublayer}"), bundle.reader.wiring
    sites = wiring.onto(scope), wiring.adds(scope), f"{scope}.residual"
    onto, added, total = (vectors_at(trace, site) for site in sites)
    return onto, added, total


def stream_sum(*, prompt: Prompt, token: int) -> StreamSum:
    """Decompose one token's final stream into what each part wrote.

    Args:
        prompt: to a model of a kind that reads one text.
        token: from 0.

    Raises:
        ValueError: there is no such token.
    """
    bundle = prompt.bundle
    trace = stream_trace(bundle, prompt.encoding)
    config = bundle.config
    require_index("token", token, trace[bundle.reader.stages[0]].shape[1])
    parts = _embedding_parts(bundle, trace, token)
    shifts = torch.zeros(config.d_model, dtype=torch.float64)
    inner = 0.0
    for layer, sublayer in sublayers_of(bundle):
        scope = bundle.reader.site(f"layer{layer}.{sublayer}")
        incoming, output, residual = around(bundle, trace, layer, sublayer)
        inner = max(inner, float((incoming * config.residual + output - residual).abs().max()))
        parts = {name: part * config.residual for name, part in parts.items()}
        shifts = shifts * config.residual
        parts[f"{layer}.{sublayer}"] = output[token]
        if config.norm_order == "post":
            norm = norm_at(bundle, layer, sublayer)[0]
            inverse = vectors_at(trace, f"{scope}.norm.{norm.multiplies}")[token]
            gain = norm.weight.detach().cpu().double() * inverse
            parts = {name: part * gain for name, part in parts.items()}
            shifts = shifts * gain
            if not isinstance(norm, RmsNorm):
                mean = vectors_at(trace, f"{scope}.norm.mean")[token]
                shifts = shifts - mean * gain + gain_and_bias(norm)[1].double()
    if config.norm_order == "post":
        parts["norm_shifts"] = shifts
    contributions = torch.stack(list(parts.values()))  # (part, d_model)
    stream = trace[bundle.reader.stages[-1]][0, token].cpu().double()
    return StreamSum(
        parts=tuple(parts),
        contributions=contributions.numpy(),
        total=contributions.sum(0).numpy(),
        stream=stream.numpy(),
        difference=float((contributions.sum(0) - stream).abs().max()),
        inner_difference=inner,
        norms=contributions.norm(dim=-1).numpy(),
        norm_order=config.norm_order,
        residual=config.residual,
    )


def stream_growth(*, prompt: Prompt) -> StreamGrowth:
    """Measure the stream of every token after every sublayer, and what each sublayer adds to it."""
    return growth_in(prompt.bundle, stream_trace(prompt.bundle, prompt.encoding))


def growth_in(bundle: Bundle, trace: Trace) -> StreamGrowth:
    """Measure what stream_trace recorded."""
    stages, lengths = ["embedding"], [vectors_at(trace, bundle.reader.stages[0]).norm(dim=-1)]
    written, cosines = [], []
    for layer, sublayer in sublayers_of(bundle):
        incoming, output, _ = around(bundle, trace, layer, sublayer)
        after = vectors_at(trace, bundle.reader.wiring.after(bundle.reader.site(f"layer{layer}.{sublayer}")))
        stages.append(f"{layer}.{sublayer}")
        lengths.append(after.norm(dim=-1))
        written.append(output.norm(dim=-1) / incoming.norm(dim=-1).clamp(min=1e-12))
        cosines.append(torch.cosine_similarity(output, incoming, dim=-1))
    return StreamGrowth(
        stages=tuple(stages),
        lengths=torch.stack(lengths).numpy(),
        sublayers=tuple(stages[1:]),
        written=torch.stack(written).numpy(),
        cosines=torch.stack(cosines).numpy(),
    )


def _embedding_parts(bundle: Bundle, trace: Trace, token: int) -> dict[str, Tensor]:
    if bundle.config.embedding_width is not None:
        return {"projected_embedding": vectors_at(trace, bundle.reader.stages[0])[token]}
    if bundle.config.embedding_norm:
        return {"normed_embedding": vectors_at(trace, bundle.reader.stages[0])[token]}
    scope = bundle.reader.site("embedding")
    scaled = f"{scope}.scaled_embedding"
    parts = {"token_embedding": vectors_at(trace, scaled if scaled in trace else f"{scope}.token_embedding")[token]}
    if (segment := f"{scope}.segment_embedding") in trace:
        parts["segment_embedding"] = vectors_at(trace, segment)[token]
    if (position := f"{scope}.position_embedding") in trace:
        parts["position_embedding"] = trace[position][token].cpu().double()
    return parts
