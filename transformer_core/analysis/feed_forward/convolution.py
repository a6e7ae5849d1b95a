"""The feed-forward layer as convolutions of width 1: the same numbers, each position by itself.

Vaswani et al. 2017, section 3.3, which describes it so too; gated: Shazeer 2020.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d

from transformer_core.analysis.outcome import read
from transformer_core.analysis.parts import reading_part
from transformer_core.config import require_index
from transformer_core.layers.blocks import EncoderBlock
from transformer_core.layers.feed_forward import ACTIVATIONS, FeedForward
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class Convolution:
    """One feed-forward layer's output for a text, computed twice.

    Shapes:
        as_layer, as_convolution: (pos, d_model); apart: (pos,), the greatest difference of a position

    Args:
        as_layer: recorded in the model.
        greatest: of as_layer, in magnitude; difference: of apart.
        reordered: the greatest difference once the positions go in backwards, and what comes out is turned back.
        kernels: shapes of the convolutions' weights, (out, in, width): of the gate where there is one, inner and outer.
    """

    as_layer: np.ndarray
    as_convolution: np.ndarray
    apart: np.ndarray
    greatest: float
    difference: float
    reordered: float
    kernels: tuple[tuple[int, ...], ...]


def _by_one(proj: nn.Linear, x: Tensor) -> Tensor:
    """Return the convolution of width 1 with a projection's weights: (batch, in, pos) to (batch, out, pos)."""
    return conv1d(x, proj.weight[:, :, None], proj.bias)


def convolved(layer: FeedForward, x: Tensor) -> Tensor:
    """Return what convolutions of width 1 with the layer's weights make of its input.

    Shapes:
        x: (batch, pos, d_model); returns: the same
    """
    phi, inside = ACTIVATIONS[layer.activation], _by_one(layer.inner_proj, x.mT)  # (batch, d_ff, pos)
    active = phi(inside) if layer.gate_proj is None else phi(_by_one(layer.gate_proj, x.mT)) * inside
    return _by_one(layer.outer_proj, active).mT


@torch.inference_mode()
def as_convolution(*, prompt: Prompt, layer: int) -> Convolution:
    """Compute a feed-forward layer of a text as convolutions.

    Args:
        prompt: to a model of a kind that reads one text.
        layer: from 0.

    Raises:
        ValueError: there is no such layer, or the model is a mixture of experts.
    """
    bundle = prompt.bundle
    bundle.must_be_dense()
    require_index("layer", layer, bundle.config.n_layers)
    scope = bundle.reader.site(f"layer{layer}.feed_forward")
    into, out = bundle.reader.wiring.into(scope), f"{scope}.output"
    trace = read(bundle, prompt.encoding, sites=(into, out)).trace
    block = cast(EncoderBlock, reading_part(bundle.model).stack.layers[layer])
    dense = cast(FeedForward, block.feed_forward)
    x, recorded = trace[into], trace[out][0]  # (1, pos, d_model) and (pos, d_model)
    again, backwards = convolved(dense, x)[0], convolved(dense, x.flip(1)).flip(1)[0]
    apart = (again - recorded).abs().amax(-1)
    projections = (dense.gate_proj, dense.inner_proj, dense.outer_proj)
    return Convolution(
        recorded.float().cpu().numpy(),
        again.float().cpu().numpy(),
        apart.float().cpu().numpy(),
        greatest=float(recorded.abs().max()),
        difference=float(apart.max()),
        reordered=float((backwards - recorded).abs().max()),
        kernels=tuple((*proj.weight.shape, 1) for proj in projections if proj is not None),
    )
