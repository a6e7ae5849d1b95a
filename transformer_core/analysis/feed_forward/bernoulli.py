"""GELU as a coin: x is kept with probability Phi(x), else 0; the mean over many tosses is x Phi(x).

ReLU, dropout and GELU are one thing, x times a gate, and differ in what decides the gate. Hendrycks and Gimpel 2016,
section 2.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.timing import log_log_slope
from transformer_core.config import require_range
from transformer_core.layers.feed_forward import gelu, relu

MOST_DRAWS = 10_000
REPEATS = 400
FIRST_DRAWS = 10
MOST_PLACES = 400
REACH, POINTS = 4.0, 81
KEPT_BY_DROPOUT = 0.5


@dataclass(frozen=True, eq=False)
class CoinTosses:
    """Tosses of the coin that GELU is the mean of, and how fast their mean comes near.

    Shapes:
        kept: (draw); running_mean, drawn: (place), the mean after so many draws
        sizes, root_mean_square: (size)

    Args:
        x: what is tossed for.
        probability: Phi(x), that it is kept.
        expected: GELU(x), computed exactly.
        kept: whether each toss kept x.
        drawn: number of draws at each place of the running mean, evenly spread on a logarithmic axis.
        mean: of all tosses; error is its distance from `expected`.
        sizes: numbers of draws whose error was measured.
        root_mean_square: error of the mean over as many draws, over `repeats` independent series.
        slope: of log error over log draws, by least squares; nan where no toss ever differed from the others.
        repeats: independent series.
    """

    x: float
    probability: float
    expected: float
    kept: np.ndarray
    drawn: np.ndarray
    running_mean: np.ndarray
    mean: float
    error: float
    sizes: np.ndarray
    root_mean_square: np.ndarray
    slope: float
    repeats: int


def coin_tosses(*, x: float, draws: int, seed: int) -> CoinTosses:
    """Toss the coin `draws` times, and measure over many series how the error of the mean falls.

    Args:
        x: the pre-activation.
        draws: from 10 to 10,000.
        seed: of the tosses; the error is measured on series with seeds of their own.

    Raises:
        ValueError: draws is outside its range.
    """
    require_range("draws", draws, FIRST_DRAWS, MOST_DRAWS)
    value = torch.tensor(x, dtype=torch.float64)
    probability = float(torch.special.ndtr(value))
    expected = float(gelu(value))
    kept = _tossed(torch.tensor([probability]), draws, seed)[:, 0]  # (draw)
    drawn = np.unique(np.geomspace(1, draws, min(draws, MOST_PLACES)).round().astype(int))
    running_mean = (kept.cumsum(0).numpy()[drawn - 1] / drawn) * x
    sizes, errors = _errors(x, probability, expected, seed)
    return CoinTosses(
        x=x,
        probability=probability,
        expected=expected,
        kept=kept.bool().numpy(),
        drawn=drawn,
        running_mean=running_mean,
        mean=float(running_mean[-1]),
        error=abs(float(running_mean[-1]) - expected),
        sizes=sizes,
        root_mean_square=errors,
        slope=log_log_slope(sizes, errors),
        repeats=REPEATS,
    )


@dataclass(frozen=True, eq=False)
class Gates:
    """What is left of x under three gates, each opened by a coin.

    Shapes:
        x, and all others of the axis: (point,)

    Args:
        relu, gelu: exact; dropout: the mean p x, before it is divided by p.
        relu_gate, gelu_gate, dropout_gate: probability that x is kept: 1 where x > 0, Phi(x), p.
        tossed_gelu, tossed_dropout: means over `draws` tosses of x times the coin.
        error: greatest distance of tossed_gelu from gelu.
    """

    x: np.ndarray
    relu: np.ndarray
    gelu: np.ndarray
    dropout: np.ndarray
    relu_gate: np.ndarray
    gelu_gate: np.ndarray
    dropout_gate: np.ndarray
    tossed_gelu: np.ndarray
    tossed_dropout: np.ndarray
    draws: int
    error: float


def gates(*, draws: int, seed: int) -> Gates:
    """Toss a coin for every x on an axis: one that depends on x (GELU), and one that does not (dropout).

    Args:
        draws: tosses for each x, from 1 to 10,000.
        seed: of the tosses.

    Raises:
        ValueError: draws is outside its range.
    """
    require_range("draws", draws, 1, MOST_DRAWS)
    x = torch.linspace(-REACH, REACH, POINTS, dtype=torch.float64)
    chance = torch.special.ndtr(x)
    alike = torch.full_like(x, KEPT_BY_DROPOUT)
    by_gelu, by_dropout = (x * _tossed(gate, draws, seed).mean(0) for gate in (chance, alike))
    return Gates(
        x=x.numpy(),
        relu=relu(x).numpy(),
        gelu=gelu(x).numpy(),
        dropout=(alike * x).numpy(),
        relu_gate=(x > 0).double().numpy(),
        gelu_gate=chance.numpy(),
        dropout_gate=alike.numpy(),
        tossed_gelu=by_gelu.numpy(),
        tossed_dropout=by_dropout.numpy(),
        draws=draws,
        error=float((by_gelu - gelu(x)).abs().max()),
    )


def _tossed(probability: Tensor, draws: int, seed: int) -> Tensor:
    """Return 1 where a toss keeps x, else 0. # (draw, point)"""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(draws, len(probability), generator=generator, dtype=torch.float64) < probability).double()


def _errors(x: float, probability: float, expected: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how many draws, and the root of the mean squared error over independent series.

    A series' number of kept draws comes in one piece from the binomial law, which is that of their sum.
    """
    sizes = np.geomspace(FIRST_DRAWS, MOST_DRAWS, 10).round().astype(int)
    generator = np.random.default_rng((seed, REPEATS))
    kept = np.stack([generator.binomial(size, probability, REPEATS) / size for size in sizes])  # (size, series)
    return sizes, np.sqrt(np.square(kept * x - expected).mean(-1))
