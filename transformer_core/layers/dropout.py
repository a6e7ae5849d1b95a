"""Dropout, made cheap on a CPU: each random number of 64 bits decides eight entries.

Srivastava et al. 2014, section 4.
Read next: transformer_core/layers/positions.py
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 256
BYTES_A_NUMBER = 8


def drop(x: Tensor, probability: float) -> Tensor:
    """Set each entry to 0 with a probability and divide the others by what is left of 1, so that the mean stays.

    Departure: on a processor the probability is rounded to the next 1/256 (0.1 becomes 26/256), and the division is by
    the rounded one. A random byte an entry then decides; drawing a number an entry took half of a training step.
    """
    threshold = round(probability * LEVELS)
    if not x.is_cpu:
        return F.dropout(x, probability)
    if threshold == 0:
        return x
    numbers = torch.empty(-(-x.numel() // BYTES_A_NUMBER), dtype=torch.int64).random_(-(2**63), None)
    kept = numbers.view(torch.uint8)[: x.numel()].view(x.shape) >= threshold
    return x * kept.to(x.dtype).mul_(LEVELS / max(LEVELS - threshold, 1))


class Dropout(nn.Module):
    """Drop entries in training, and nothing otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Map any shape to the same."""
        return drop(x, self.probability) if self.training and self.probability else x
