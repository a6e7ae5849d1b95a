"""Position encodings: sinusoidal, learned, rotary and ALiBi, and the variant that is often printed by mistake.

Vaswani et al. 2017, section 3.5; Su et al. 2021 (rotary); Press et al. 2022 (ALiBi).
Read next: transformer_core/layers/normalization.py
"""

import math
from functools import lru_cache

import torch
from torch import Tensor, nn


def sinusoidal_table(
    length: int, d_model: int, *, doubled: bool = False, halves: bool = False, base: float = 10_000.0
) -> Tensor:
    """Return sin and cos of position times frequency, interleaved.

    PE(pos, 2i) = sin(pos / base^(2i / d_model)), PE(pos, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5).
    With `doubled`, the loop index 2i, already even, is multiplied by two again, as often printed:
    sin(pos / base^(4i / d_model)) and cos(pos / base^(2(2i+1) / d_model)); the wavelengths grow twice as fast.
    With `halves` the same columns stand in another order: all sines, then all cosines.

    Shapes:
        returns: (length, d_model)

    Raises:
        ValueError: d_model is odd.
    """
    if d_model % 2:
        raise ValueError(f"d_model={d_model} must be even: sines and cosines come in pairs")
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (pos, 1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # (d_model / 2,): 0, 2, 4, ...
    sine_exponent, cosine_exponent = (2 * even, 2 * (even + 1)) if doubled else (even, even)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * base ** (-sine_exponent / d_model))
    table[:, 1::2] = torch.cos(position * base ** (-cosine_exponent / d_model))
    return (torch.cat((table[:, 0::2], table[:, 1::2]), dim=1) if halves else table).float()


@lru_cache(maxsize=16)
def _cached_table(length: int, d_model: int, doubled: bool, halves: bool, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return sinusoidal_table(length, d_model, doubled=doubled, halves=halves).to(device)


class SinusoidalPositions(nn.Module):
    """Computed positions: no parameters."""

    def __init__(self, max_len: int, d_model: int, *, doubled: bool = False, halves: bool = False) -> None:
        super().__init__()
        self.max_len, self.d_model, self.doubled, self.halves = max_len, d_model, doubled, halves

    def forward(self, length: int, device: torch.device, start: int = 0) -> Tensor:
        """Return (pos, d_model), from position `start` on."""
        end = start + length
        rows = min(self.max_len, 1 << (end - 1).bit_length())  # few tables, none much longer than its text
        return _cached_table(rows, self.d_model, self.doubled, self.halves, device)[start:end]


class LearnedPositions(nn.Module):
    """One trained vector per position (Gehring et al. 2017; BERT and GPT-2)."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_len, d_model))

    def forward(self, length: int, device: torch.device, start: int = 0) -> Tensor:
        """Return (pos, d_model), from position `start` on."""
        return self.weight[start : start + length]


def make_positions(
    positions: str, max_len: int, d_model: int, *, halves: bool = False
) -> SinusoidalPositions | LearnedPositions | None:
    """Return the module that yields vectors to add to the embeddings, or None where the scheme adds none."""
    if positions == "learned":
        return LearnedPositions(max_len, d_model)
    if positions.startswith("sinusoidal"):
        return SinusoidalPositions(max_len, d_model, doubled=positions == "sinusoidal_doubled", halves=halves)
    return None


@lru_cache(maxsize=64)
def _rotary_angles(start: int, end: int, d_head: int, device: torch.device) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        frequency = 10_000.0 ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)  # (d_head / 2,)
        angle = torch.arange(start, end, dtype=torch.float64)[:, None] * frequency  # (pos, d_head / 2)
        return angle.cos().float().to(device), angle.sin().float().to(device)


def rotate(x: Tensor, start: int = 0) -> Tensor:
    """Turn each pair of coordinates (2i, 2i+1) by position times base^(-2i / d_head) (Su et al. 2021, eq. 15).

    Shapes:
        x: (batch, head, pos, d_head); returns: the same

    Args:
        start: position of the first vector.
    """
    cos, sin = _rotary_angles(start, start + x.shape[-2], x.shape[-1], x.device)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


@lru_cache(maxsize=8)
def alibi_bias(n_heads: int, query_pos: int, key_pos: int, device: torch.device) -> Tensor:
    """Return -m_h |i - j|, the penalty of distance added to scores (Press et al. 2022, section 3).

    Departure: the paper is causal, where j <= i; in an encoder the same penalty here falls on both sides alike, so
    that such a model cannot tell a sentence from its mirror image.
    The slopes m_h are 2^(-8/n), 2^(-16/n), ... for n heads a power of two, and for other n the published completion:
    the powers of the next smaller power of two, then every other one of the next larger.

    Shapes:
        returns: (head, query_pos, key_pos)
    """
    smaller = 2 ** math.floor(math.log2(n_heads))
    slopes = [2 ** (-8 * (k + 1) / smaller) for k in range(smaller)]
    slopes += [2 ** (-4 * (2 * k + 1) / smaller) for k in range(n_heads - smaller)]
    with torch.inference_mode(False):
        query = torch.arange(query_pos, device=device)[:, None] + key_pos - query_pos
        distance = (query - torch.arange(key_pos, device=device)).abs().float()
        return -torch.tensor(slopes, device=device)[:, None, None] * distance
