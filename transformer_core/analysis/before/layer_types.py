"""Self-attention, recurrence and convolution: operations, steps in sequence and path lengths, counted; times, measured.

Vaswani et al. 2017, section 4 and table 1, whose row of restricted attention is left out. The table has no constants;
here they are counted: multiplications of a number by a number, which products of matrices consist of.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.analysis.timing import sweep

SYSTEMS = ("attention", "recurrent", "convolution")
PATHS = (*SYSTEMS, "dilated")
LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)
WIDTHS = (32, 64, 128, 256, 512)
KERNELS = (2, 3, 5, 9)
HEADS = 4


@dataclass(frozen=True, eq=False)
class LayerTypes:
    """One layer of each type on sequences of each length, read whole, forward only.

    Shapes:
        lengths: (length,)
        operations: (system, length), multiplications; attention's scores and mixtures, without its projections
        projections: (length,), multiplications of attention's four projections, which the table leaves out
        steps: (system, length), how many of its operations must wait for the one before
        paths: (path, length), layers or steps between the first position and the last, see path_length
        seconds: (system, length), the least of several calls on one thread; attention's with its projections

    Args:
        d_model: width of the layers.
        measured: when the measurement ended, in seconds since the beginning of 1970, UTC.
        spread: of the times, as of Stopwatch.
    """

    d_model: int
    systems: tuple[str, ...]
    lengths: np.ndarray
    operations: np.ndarray
    projections: np.ndarray
    steps: np.ndarray
    paths: np.ndarray
    seconds: np.ndarray
    measured: float
    spread: float

    def overtaken(self) -> int:
        """Return the least length at which attention multiplies more than recurrence, measured or not."""
        alike = {"d_model": self.d_model, "kernel": 1}
        return next(n for n in count(1) if operations("attention", n, **alike) > operations("recurrent", n, **alike))


def operations(system: str, length: int, d_model: int, kernel: int) -> int:
    """Return how many multiplications a layer needs for a sequence.

    Attention 2 n^2 d (scores, mixtures), recurrence 2 n d^2 (W x and U h), convolution k n d^2.

    Raises:
        ValueError: there is no such system.
    """
    found = {
        "attention": 2 * length**2 * d_model,
        "recurrent": 2 * length * d_model**2,
        "convolution": kernel * length * d_model**2,
    }
    if system not in found:
        raise ValueError(f"system={system!r} must be one of {', '.join(found)}")
    return found[system]


def path_length(system: str, length: int, kernel: int) -> int:
    """Return how far a signal travels from the first position to the last.

    Attention: one layer. Recurrence: n - 1 steps of one layer. Convolution over k - 1 positions before and the own:
    ceil((n - 1) / (k - 1)) layers, or with dilations 1, k, k^2, ... ceil(log_k n) layers.

    Raises:
        ValueError: there is no such system.
    """
    if system == "dilated":
        layers, reach = 0, 1
        while reach < length:
            layers, reach = layers + 1, reach * kernel
        return max(1, layers)
    found = {"attention": 1, "recurrent": length - 1, "convolution": math.ceil((length - 1) / (kernel - 1))}
    if system not in found:
        raise ValueError(f"system={system!r} must be one of {', '.join(PATHS)}")
    return found[system]


def make_layers(d_model: int, kernel: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return torch's own layer of each system, as a function of (batch, pos, d_model) of the same shape."""
    attention = nn.MultiheadAttention(d_model, HEADS, batch_first=True).eval()
    recurrent = nn.RNN(d_model, d_model, batch_first=True).eval()
    convolution = nn.Conv1d(d_model, d_model, kernel).eval()

    def convolve(x: Tensor) -> Tensor:
        padded = nn.functional.pad(x.mT, (kernel - 1, 0))  # (batch, d_model, pos): no position sees a later one
        return convolution(padded).mT

    return {
        "attention": lambda x: attention(x, x, x, need_weights=False)[0],
        "recurrent": lambda x: recurrent(x)[0],
        "convolution": convolve,
    }


@torch.inference_mode()
def layer_types(*, d_model: int, kernel: int, seed: int, measurement: int) -> LayerTypes:
    """Count and time one layer of each type as the sequence grows to 2,048 positions.

    Args:
        d_model: width of inputs and outputs, one of WIDTHS.
        kernel: positions that a convolution sees, one of KERNELS.
        seed: of inputs and weights, which are random: times do not depend on them.
        measurement: any number; another one measures again.

    Raises:
        ValueError: d_model or kernel is not one of these.
    """
    for name, value, choices in (("d_model", d_model, WIDTHS), ("kernel", kernel, KERNELS)):
        if value not in choices:
            raise ValueError(f"{name}={value} must be one of {', '.join(map(str, choices))}")
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        layers = make_layers(d_model, kernel)

        def calls(length: int) -> list[Callable[[], Tensor]]:
            x = torch.randn(1, length, d_model)
            return [partial(layers[name], x) for name in SYSTEMS]

        seconds, spread = sweep(LENGTHS, calls, repeats=7)
    ones = [1] * len(LENGTHS)
    return LayerTypes(
        d_model=d_model,
        systems=SYSTEMS,
        lengths=np.array(LENGTHS),
        operations=np.array([[operations(name, n, d_model, kernel) for n in LENGTHS] for name in SYSTEMS]),
        projections=np.array([4 * n * d_model**2 for n in LENGTHS]),
        steps=np.array([ones, list(LENGTHS), ones]),
        paths=np.array([[path_length(name, n, kernel) for n in LENGTHS] for name in PATHS]),
        seconds=seconds,
        measured=time.time(),
        spread=spread,
    )
