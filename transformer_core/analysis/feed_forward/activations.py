"""Activation functions as curves, with the pre-activations of a sentence on the same axis.

GELU and its tanh approximation: Hendrycks and Gimpel 2016, section 2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import read
from transformer_core.config import require_index
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.prompt import Prompt

LEAST_REACH = 4.0
POINTS = 801
BINS_PER_UNIT, MOST_BINS = 5, 400  # where large weights make the axis long, bins are wider, not more


@dataclass(frozen=True, eq=False)
class OwnActivations:
    """The activations on an axis that holds every pre-activation of one layer for one sentence.

    Shapes:
        x: (point); values, slopes: (activation, point)
        edges: (bin + 1); counts, token_counts: (bin)
        token_values: (neuron)

    Args:
        names: of the activations, in the order of values and slopes.
        slopes: derivatives, as torch differentiates our functions.
        apart: |exact GELU - tanh GELU| over the axis. # (point)
        counts: of all pre-activations of the sentence; token_counts those of the chosen token alone.
        token_values: the chosen token's pre-activations.
        neurons: pre-activations counted in all.
        below_zero, token_below_zero: share of them below 0, in [0, 1].
        axis_difference, axis_place: greatest |exact GELU - tanh GELU| over the axis, and where on it.
        own_difference, own_place: the same over the sentence's own pre-activations.
        used: which activation the model was trained with.
    """

    x: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    slopes: np.ndarray
    apart: np.ndarray
    edges: np.ndarray
    counts: np.ndarray
    token_counts: np.ndarray
    token_values: np.ndarray
    neurons: int
    below_zero: float
    token_below_zero: float
    axis_difference: float
    axis_place: float
    own_difference: float
    own_place: float
    used: str


def value_and_slope(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Return a function's values and its derivative at each point, by automatic differentiation.

    Shapes:
        x: (point); returns: (point), (point)
    """
    x = x.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        y = function(x)
        (slope,) = torch.autograd.grad(y.sum(), x)
    return y.detach(), slope


def own_activations(*, prompt: Prompt, layer: int, token: int) -> OwnActivations:
    """Return the activations as curves, and where one layer's pre-activations of a text lie on their axis.

    Args:
        prompt: to a model of a kind that reads one text.
        layer: whose feed-forward layer, from 0.
        token: the one that is counted by itself, from 0.

    Raises:
        ValueError: there is no such layer or token.
    """
    values = pre_activations(prompt, layer)  # (pos, d_ff)
    require_index("token", token, len(values))
    reach = max(LEAST_REACH, math.ceil(float(values.abs().max())))
    x = torch.linspace(-reach, reach, POINTS, dtype=torch.float64)  # (point)
    curves = [value_and_slope(function, x) for function in ACTIVATIONS.values()]
    edges = np.linspace(-reach, reach, min(int(2 * reach * BINS_PER_UNIT), MOST_BINS) + 1)
    everything, own = values.numpy().ravel(), values[token].numpy()
    return OwnActivations(
        x=x.numpy(),
        names=tuple(ACTIVATIONS),
        values=np.stack([value.numpy() for value, _ in curves]),
        slopes=np.stack([slope.numpy() for _, slope in curves]),
        apart=_apart(x).numpy(),
        edges=edges,
        counts=np.histogram(everything, edges)[0],
        token_counts=np.histogram(own, edges)[0],
        token_values=own,
        neurons=everything.size,
        below_zero=float((everything < 0).mean()),
        token_below_zero=float((own < 0).mean()),
        **_difference("axis", x),
        **_difference("own", values.flatten()),
        used=prompt.bundle.config.activation,
    )


def pre_activations(prompt: Prompt, layer: int) -> Tensor:
    """Return one layer's pre-activations of a text. # (pos, d_ff)

    Raises:
        ValueError: there is no such layer, or the model is a mixture of experts.
    """
    prompt.bundle.must_be_dense()
    require_index("layer", layer, prompt.bundle.config.n_layers)
    site = prompt.bundle.reader.site(f"layer{layer}.feed_forward.pre_activation")
    encoding = prompt.encoding
    return read(prompt.bundle, encoding, sites=(site,)).trace[site][0].float().cpu()


def _apart(x: Tensor) -> Tensor:
    return (ACTIVATIONS["gelu"](x) - ACTIVATIONS["gelu_tanh"](x)).abs()


def _difference(name: str, x: Tensor) -> dict[str, float]:
    x = x.double()
    apart = _apart(x)
    place = int(apart.argmax())
    return {f"{name}_difference": float(apart[place]), f"{name}_place": float(x[place])}
