"""Parameter counts: how many parameters each part of a model has."""

from dataclasses import dataclass

import numpy as np

from transformer_core.bundle import Bundle

PARTS = {
    "norms": ("norm.", "norms."),
    "attention": ("attention.", "alignment."),
    "feed_forward": ("feed_forward.",),
    "gates": (".cell.",),
    "embeddings": ("embedding.",),
}
REST = "heads"


@dataclass(frozen=True, eq=False)
class Inventory:
    """How many parameters each part of a model has.

    Shapes:
        counts: (part,)

    Args:
        parts: entries of PARTS and "heads", those that the model has, the largest first.
        counts: a matrix that two parts share counts once, as the embedding's.
    """

    parts: tuple[str, ...]
    counts: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """Each part of all numbers, adding up to 1; (part,)."""
        return self.counts / self.counts.sum()


def _part_of(name: str) -> str:
    return next((part for part, signs in PARTS.items() if any(sign in name for sign in signs)), REST)


def count_parts(*, bundle: Bundle) -> Inventory:
    """Count the parameters of a model by the part they belong to."""
    counts: dict[str, int] = {}
    for name, parameter in bundle.model.named_parameters():
        part = _part_of(name)
        counts[part] = counts.get(part, 0) + parameter.numel()
    ordered = sorted(counts, key=counts.__getitem__, reverse=True)
    return Inventory(tuple(ordered), np.array([counts[part] for part in ordered]))
