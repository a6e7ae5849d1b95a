"""Parameter counts: how many parameters each part of a model has."""

import re
from dataclasses import dataclass

import numpy as np
from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig

PARTS = {
    "norms": ("norm.", "norms."),
    "attention": ("attention.", "alignment."),
    "feed_forward": ("feed_forward.",),
    "gates": (".cell.",),
    "embeddings": ("embedding.",),
}
REST = "heads"
EXPERT = re.compile(r"\.experts\.(\d+)\.")


@dataclass(frozen=True, eq=False)
class Inventory:
    """How many parameters each part of a model has.

    Shapes:
        counts, active: (part,)

    Args:
        parts: entries of PARTS and "heads", those that the model has, the largest first.
        counts: a matrix that two parts share counts once, as the embedding's.
        active: those that compute one token: of a mixture's experts, as many as a token chooses.
    """

    parts: tuple[str, ...]
    counts: np.ndarray
    active: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """Each part of all numbers, adding up to 1; (part,)."""
        return self.counts / self.counts.sum()


def _part_of(name: str) -> str:
    return next((part for part, signs in PARTS.items() if any(sign in name for sign in signs)), REST)


def count_parts(*, bundle: Bundle) -> Inventory:
    """Count the parameters of a model by the part they belong to."""
    config = bundle.config
    return parts_counted(bundle.model, config.n_active_experts if isinstance(config, ModelConfig) else 0)


def parts_counted(model: nn.Module, n_active_experts: int) -> Inventory:
    """Count as count_parts, of a model whose tokens choose so many experts; 0 where it has none."""
    counts: dict[str, int] = {}
    idle: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part, expert = _part_of(name), EXPERT.search(name)
        counts[part] = counts.get(part, 0) + parameter.numel()
        if expert and int(expert[1]) >= n_active_experts:  # all experts have one size
            idle[part] = idle.get(part, 0) + parameter.numel()
    ordered = sorted(counts, key=counts.__getitem__, reverse=True)
    active = np.array([counts[part] - idle.get(part, 0) for part in ordered])
    return Inventory(tuple(ordered), np.array([counts[part] for part in ordered]), active)
