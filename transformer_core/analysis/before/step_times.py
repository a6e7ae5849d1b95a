"""What does one more word cost as the sequence grows? Measured live, recurrent against attention.

Vaswani et al. 2017, section 4 and table 1.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from transformer_core.analysis.timing import log_log_slope, sweep
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.cache import KeptPair
from transformer_core.layers.initialization import initialize
from transformer_core.models.recurrent.cells import initialize_cell
from transformer_core.models.recurrent.layers import Gru, Lstm, Recurrent

SYSTEMS = ("gru", "lstm", "attention")
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
WIDTHS = (32, 64, 128, 256, 512)
HEADS = 4
LATE = 4


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Times of one layer on one thread, the least of several calls, in seconds, by the length of the sequence.

    Shapes:
        lengths: (length,)
        step: (system, length), one more position when there are `lengths` before it: a recurrent layer goes on from its
            state, attention from the keys and values that it kept
        reading: (system, length), a whole sequence at once, as an encoder reads it or as in training, forward only
        kept_numbers: (system, length), how many numbers have to be kept for the next step

    Args:
        systems: "gru", "lstm", "attention" (self-attention with four heads and its four projections).
        step_slopes, reading_slopes: of log time against log length over the four longest, one per system.
        measured: when the measurement ended, in seconds since the beginning of 1970, UTC.
        spread: of the times, as of Stopwatch.
    """

    systems: tuple[str, ...]
    lengths: np.ndarray
    step: np.ndarray
    reading: np.ndarray
    kept_numbers: np.ndarray
    step_slopes: tuple[float, ...]
    reading_slopes: tuple[float, ...]
    measured: float
    spread: float


@torch.inference_mode()
def step_times(*, d_model: int, seed: int, measurement: int) -> StepTimes:
    """Time one layer of each system as the sequence grows to 1,024 positions.

    Args:
        d_model: width of inputs and states, one of 32, 64, 128, 256, 512.
        seed: of inputs and weights, which are random: times do not depend on them.
        measurement: any number; another one measures again.

    Raises:
        ValueError: d_model is not one of these.
    """
    if d_model not in WIDTHS:
        raise ValueError(f"d_model={d_model} must be one of {', '.join(map(str, WIDTHS))}")
    generator = torch.Generator().manual_seed(seed)
    layers = _layers(d_model, generator)

    def calls(length: int) -> list[Callable[[], object]]:
        x = torch.randn(1, length, d_model, generator=generator)  # (batch, pos, d_model)
        return [call for name in SYSTEMS for call in (partial(layers[name], x), _one_more(layers[name], x))]

    times, spread = sweep(LENGTHS, calls, repeats=(7, 51) * len(SYSTEMS))
    reading, step, lengths = times[::2], times[1::2], np.array(LENGTHS)
    kept = np.stack([np.full_like(lengths, d_model), np.full_like(lengths, 2 * d_model), 2 * d_model * lengths])
    slopes = [tuple(log_log_slope(lengths[-LATE:], row[-LATE:]) for row in rows) for rows in (step, reading)]
    return StepTimes(SYSTEMS, lengths, step, reading, kept, *slopes, measured=time.time(), spread=spread)


def _layers(d_model: int, generator: torch.Generator) -> dict[str, nn.Module]:
    layers = {
        "gru": Gru(d_model, d_model),
        "lstm": Lstm(d_model, d_model),
        "attention": MultiHeadAttention(d_model, HEADS),
    }
    for layer in layers.values():
        initialize(layer, generator)
        if isinstance(layer, Recurrent):
            initialize_cell(layer.cell, generator)
    return {name: layer.eval() for name, layer in layers.items()}


def _one_more(layer: nn.Module, x: torch.Tensor) -> Callable[[], object]:
    """Return what reads one more position after all of x."""
    if isinstance(layer, Recurrent):
        _, state = layer(x)
        return lambda: layer(x[:, :1], state)
    kept = KeptPair(grows=True)
    layer(x, causal=True, cache=kept)
    return lambda: layer(x[:, :1], cache=kept.picked(None))
