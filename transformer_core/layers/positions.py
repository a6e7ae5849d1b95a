"""Position encodings: sinusoidal, learned, rotary, ALiBi, relative, and the variant that is often printed by mistake.

Vaswani et al. 2017, section 3.5; Su et al. 2021 (rotary), stretched: Chen et al. 2023, Peng et al. 2024, Ding
et al. 2024; Press et al. 2022 (ALiBi); Raffel et al. 2020 (relative).
Read next: transformer_core/layers/normalization.py
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from transformer_core.config import ModelConfig, RotaryScaling


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


@dataclass(frozen=True)
class Rotary:
    """How far rotary positions turn which coordinates (Su et al. 2021).

    Pair i of a vector turns by base^(-2i / d) a position (eq. 15). Scaling makes these angles smaller, so that a longer
    text turns no further than those that the model learned from:
    linear: every angle is divided by factor (Chen et al. 2023, eq. 4);
    llama3: that of a pair that turns less than `slow` times over original_len positions, and in parts up to `fast`
    times (Grattafiori et al. 2024, released code);
    yarn: in parts from the pair that turns `fast` times to the one that turns `slow` times, and queries and keys grow
    by 0.1 ln(factor) + 1 each (Peng et al. 2024, eq. 17 to 23);
    longrope: each pair's angle is divided by a number of its own, which was searched for, and queries and keys grow by
    sqrt(1 + ln(factor) / ln(original_len)) (Ding et al. 2024, section 3; Abdin et al. 2024, released code).

    Args:
        dims: how many coordinates turn, the first ones; None means all.
        halves: coordinate i turns with i + d / 2 instead of 2i with 2i + 1; weights for one are of no use to the other.
        base, scaling, factor, original_len, slow, fast: see above; original_len counts positions, slow and fast turns.
        factors: longrope's, one a pair.
    """

    base: float = 10_000.0
    dims: int | None = None
    halves: bool = False
    scaling: RotaryScaling = "none"
    factor: float = 1.0
    original_len: int = 0
    slow: float = 1.0
    fast: float = 32.0
    factors: tuple[float, ...] = ()

    @classmethod
    def of_layer(cls, config: ModelConfig, layer: int) -> "Rotary":
        """Return that of one layer of a config with positions="rotary"."""
        if config.window(layer) is not None and config.rotary_base_in_window is not None:
            return cls(config.rotary_base_in_window, config.rotary_dims, config.rotary_halves)
        return cls(
            config.rotary_base,
            config.rotary_dims,
            config.rotary_halves,
            config.rotary_scaling,
            config.rotary_factor,
            config.rotary_original_len or 0,
            config.rotary_slow,
            config.rotary_fast,
            config.rotary_factors,
        )

    def pair(self, number: int, d_head: int) -> tuple[int, int]:
        """Return the places of the two coordinates of a pair."""
        return (number, number + (self.dims or d_head) // 2) if self.halves else (2 * number, 2 * number + 1)

    @property
    def growth(self) -> float:
        """What a turned vector is multiplied by."""
        if self.factor <= 1 or self.scaling not in ("yarn", "longrope"):
            return 1.0
        grown = math.log(self.factor)
        return 0.1 * grown + 1 if self.scaling == "yarn" else math.sqrt(1 + grown / math.log(self.original_len))

    def angles(self, d_head: int) -> Tensor:
        """Return the angle of each pair, in radians a position.

        Shapes:
            returns: (pair,), in float64
        """
        dims = self.dims or d_head
        angle = self.base ** (-torch.arange(0, dims, 2, dtype=torch.float64) / dims)
        if self.scaling == "none":
            return angle
        if self.scaling == "longrope":
            return angle / torch.tensor(self.factors, dtype=torch.float64)
        return angle / self.factor + (1 - 1 / self.factor) * self._kept(angle, dims) * angle

    def _kept(self, angle: Tensor, dims: int) -> Tensor:
        """Return which share of each angle is not stretched, (pair,)."""
        if self.scaling == "linear":
            return torch.zeros_like(angle)
        if self.scaling == "llama3":
            turns = self.original_len * angle / (2 * math.pi)
            return ((turns - self.slow) / (self.fast - self.slow)).clamp(0, 1)

        def pair_of(turns: float) -> float:
            return dims * math.log(self.original_len / (turns * 2 * math.pi)) / (2 * math.log(self.base))

        first = max(math.floor(pair_of(self.fast)), 0)
        last = min(math.ceil(pair_of(self.slow)), dims - 1)
        return 1 - ((torch.arange(len(angle)) - first) / max(last - first, 0.001)).clamp(0, 1)


ROTARY = Rotary()


@lru_cache(maxsize=64)
def _rotary_table(rotary: Rotary, start: int, end: int, d_head: int, device: torch.device) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        angle = torch.arange(start, end, dtype=torch.float64)[:, None] * rotary.angles(d_head)  # (pos, pair)
        cos, sin = angle.cos() * rotary.growth, angle.sin() * rotary.growth
        return cos.float().to(device), sin.float().to(device)


def rotate(x: Tensor, start: int = 0, rotary: Rotary = ROTARY, *, back: bool = False) -> Tensor:
    """Turn each pair of coordinates by its position times the pair's angle (Su et al. 2021, eq. 15).

    Shapes:
        x: (batch, head, pos, d_head); returns: the same

    Args:
        start: position of the first vector.
        rotary: which pairs, and how far.
        back: undo it.
    """
    cos, sin = _rotary_table(rotary, start, start + x.shape[-2], x.shape[-1], x.device)
    if back:
        cos, sin = cos / rotary.growth**2, -sin / rotary.growth**2
    dims = rotary.dims or x.shape[-1]
    turning, resting = x[..., :dims], x[..., dims:]
    if rotary.halves:
        first, second = turning.chunk(2, -1)
        turned = torch.cat((first * cos - second * sin, first * sin + second * cos), -1)
    else:
        first, second = turning[..., 0::2], turning[..., 1::2]
        turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1).flatten(-2)
    return torch.cat((turned, resting), -1) if resting.shape[-1] else turned


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


@lru_cache(maxsize=8)
def distance_buckets(
    query_pos: int, key_pos: int, buckets: int, most: int, *, both_sides: bool, device: torch.device | str = "cpu"
) -> Tensor:
    """Return the kind of distance from each query to each key (Raffel et al. 2020, section 2.1, and their code).

    Of n buckets, the first e = n / 2 are for one distance d each; those after them grow with its logarithm: e +
    floor((n - e) ln(d / e) / ln(most / e)), at most n - 1. With both sides n is half of all buckets, and keys after the
    query have the other half; else they count as distance 0. With more keys than queries (a cache), the queries are the
    last positions.

    Shapes:
        returns: (query_pos, key_pos), whole numbers
    """
    with torch.inference_mode(False):
        query = torch.arange(query_pos, device=device)[:, None] + key_pos - query_pos
        ahead = torch.arange(key_pos, device=device) - query  # (query_pos, key_pos)
        n = buckets // 2 if both_sides else buckets
        exact = n // 2
        distance = ahead.abs() if both_sides else (-ahead).clamp(min=0)
        share = torch.log(distance.clamp(min=1).float() / exact) / math.log(most / exact)
        far = (exact + (share * (n - exact)).long()).clamp(max=n - 1)
        return torch.where(distance < exact, distance, far) + n * (both_sides & (ahead > 0))


class RelativeBias(nn.Module):
    """B[bucket(j - i), h], a trained number for each kind of distance and each head, added to scores.

    Raffel et al. 2020, section 2.1; the layers of a stack share one.

    Args:
        both_sides: keys after the query have buckets of their own.
    """

    def __init__(self, n_heads: int, buckets: int, most: int, *, both_sides: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(buckets, n_heads))
        self.most, self.both_sides = most, both_sides

    def buckets(self, query_pos: int, key_pos: int) -> Tensor:
        """Return the kind of distance from each query to each key: (query_pos, key_pos)."""
        count, device = len(self.weight), self.weight.device
        return distance_buckets(query_pos, key_pos, count, self.most, both_sides=self.both_sides, device=device)

    def forward(self, query_pos: int, key_pos: int) -> Tensor:
        """Return what is added to scores: (head, query_pos, key_pos)."""
        return self.weight[self.buckets(query_pos, key_pos)].permute(2, 0, 1)
