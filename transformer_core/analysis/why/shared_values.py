"""May K = V? One projection less, and what a short training loses by it.

Shared keys and values as in Shazeer 2019 are another thing: there heads share them, here a key is its own value.
Read next: scorings.py.
"""

from dataclasses import dataclass, replace

import torch
from torch import nn

from transformer_core.analysis.why.short_training import Trial, train_on_reviews
from transformer_core.bundle import MODELS, Bundle


@dataclass(frozen=True, eq=False)
class Saved:
    """Parameters of a model with and without a value projection of its own.

    Args:
        own, shared: of all attention layers.
        whole_own, whole_shared: of the whole model.
    """

    own: int
    shared: int
    whole_own: int
    whole_shared: int


def _count(model: nn.Module, part: str) -> int:
    return sum(parameter.numel() for name, parameter in model.named_parameters() if part in name)


def parameters_saved(*, bundle: Bundle) -> Saved:
    """Count the parameters of a model's configuration with share_key_value off and on; nothing is trained."""
    with torch.device("meta"):
        own, shared = (MODELS[bundle.kind](replace(bundle.config, share_key_value=on)) for on in (False, True))
    counts = [_count(model, part) for part in ("attention.", "") for model in (own, shared)]
    return Saved(*counts)


def train_shared_values(*, language: str, seeds: tuple[int, ...]) -> Trial:
    """Train the same small classifier with values of their own ("own") and with K = V ("shared").

    Raises:
        ValueError: as train_on_reviews.
    """
    return train_on_reviews({"own": {}, "shared": {"share_key_value": True}}, language=language, seeds=seeds)
