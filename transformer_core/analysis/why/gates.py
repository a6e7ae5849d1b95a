"""Why GELU? ReLU, dropout and GELU as one thing: x times a gate, and who decides the gate.

Hendrycks and Gimpel 2016, section 2.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.feed_forward.activations import pre_activations, value_and_slope
from transformer_core.analysis.short_training import Trial, train_on_reviews
from transformer_core.config import require_range
from transformer_core.layers.feed_forward import gelu, relu
from transformer_core.prompt import Prompt

REACH, POINTS = 4.0, 81
KEPT_BY_DROPOUT = 0.5
NEGLIGIBLE = 0.01
MOST_DRAWS = 4_096


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
        at_one, slip_at_one: Phi(x) x + (1 - Phi(x)) 0 at x = 1, and the slip with x in the other term.
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
    at_one: float
    slip_at_one: float


def gates(*, draws: int, seed: int) -> Gates:
    """Toss a coin for every x on an axis: one that depends on x (GELU), and one that does not (dropout).

    Args:
        draws: tosses for each x, from 1 to 4,096.
        seed: of the tosses.

    Raises:
        ValueError: draws is outside its range.
    """
    require_range("draws", draws, 1, MOST_DRAWS)
    x = torch.linspace(-REACH, REACH, POINTS, dtype=torch.float64)
    chance = torch.special.ndtr(x)
    tosses = torch.rand(draws, POINTS, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    tossed = x * (tosses < chance).double().mean(0)
    phi = float(torch.special.ndtr(torch.tensor(1.0, dtype=torch.float64)))
    return Gates(
        x=x.numpy(),
        relu=relu(x).numpy(),
        gelu=gelu(x).numpy(),
        dropout=(KEPT_BY_DROPOUT * x).numpy(),
        relu_gate=(x > 0).double().numpy(),
        gelu_gate=chance.numpy(),
        dropout_gate=np.full(POINTS, KEPT_BY_DROPOUT),
        tossed_gelu=tossed.numpy(),
        tossed_dropout=(x * (tosses < KEPT_BY_DROPOUT).double().mean(0)).numpy(),
        draws=draws,
        error=float((tossed - gelu(x)).abs().max()),
        at_one=phi,
        slip_at_one=1 - phi,
    )


@dataclass(frozen=True, eq=False)
class OwnGates:
    """What ReLU and GELU would let through of a sentence's own pre-activations, layer by layer.

    Shapes:
        silent_relu, silent_gelu: (layer,)

    Args:
        silent_relu: share of pre-activations where ReLU's derivative is 0.
        silent_gelu: share where GELU's derivative is smaller than `negligible`.
    """

    silent_relu: np.ndarray
    silent_gelu: np.ndarray
    negligible: float = NEGLIGIBLE


def own_gates(*, prompt: Prompt) -> OwnGates:
    """Measure in every layer of a model where no gradient would pass.

    Raises:
        ValueError: the bundle is not a classifier.
    """
    shares = []
    for layer in range(prompt.bundle.config.n_layers):
        values = pre_activations(prompt, layer).flatten()
        slopes = [value_and_slope(function, values)[1].abs() for function in (relu, gelu)]
        shares.append([float((slope < NEGLIGIBLE).float().mean()) for slope in slopes])
    return OwnGates(*np.array(shares).T)


def train_activations(*, language: str, seeds: tuple[int, ...]) -> Trial:
    """Train the same small classifier with GELU ("gelu") and with ReLU ("relu").

    Raises:
        ValueError: as train_on_reviews.
    """
    return train_on_reviews(
        {"gelu": {"activation": "gelu"}, "relu": {"activation": "relu"}}, language=language, seeds=seeds
    )
