"""Why GELU? Where ReLU and GELU let no gradient of a text pass, and one small classifier trained with each.

The gates themselves, and the coin that opens them, are in feed_forward/bernoulli.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.feed_forward.activations import pre_activations, value_and_slope
from transformer_core.analysis.short_training import Trial, train_on_reviews
from transformer_core.layers.feed_forward import gelu, relu
from transformer_core.prompt import Prompt

NEGLIGIBLE = 0.01


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
