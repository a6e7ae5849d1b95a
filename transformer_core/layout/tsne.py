"""t-SNE, exact: a picture in which neighbours stay neighbours, and which follows moving points from frame to frame.

van der Maaten and Hinton 2008; start from PCA: Kobak and Berens 2019.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.layout.pca import normalised, pca
from transformer_core.progress import counted

PERPLEXITY = 30.0
MOST_ITERATIONS = 50
ENTROPY_TOLERANCE = 1e-3
WIDEST = 20.0
LEAST_EXPONENT = -80.0
LEAST_AFFINITY = 1e-12
LEAST_GAIN = 0.01


@dataclass(frozen=True)
class Phase:
    """A stretch of the descent.

    Args:
        steps: how many.
        exaggeration: factor of the attraction.
        rate: learning rate, in units of the number of points.
        momentum: share of the last move that goes on.
    """

    steps: int
    exaggeration: float
    rate: float
    momentum: float


FRESH = (Phase(60, 12.0, 1 / 48, 0.5), Phase(140, 1.0, 1 / 6, 0.8))
WARM = (Phase(50, 2.0, 1 / 6, 0.5), Phase(100, 1.0, 1 / 6, 0.8))
FRESH_SPREAD = 1e-4
WARM_SPREAD = 0.5  # times sqrt(points): about where pictures of any data come to rest
HOLD = 1.0


@torch.no_grad()
def affinities(distances: Tensor, *, perplexity: float = PERPLEXITY) -> Tensor:
    """Return how strongly points attract one another: p_ij of van der Maaten and Hinton 2008, eq. 1 and section 3.1.

    The precision of each point's Gaussian is found by Newton's method within a shrinking bracket instead of the paper's
    bisection. Where the perplexity cannot be had, since more points than that coincide, it is as near as can be.

    Shapes:
        distances: (point, point), squared; returns: (point, point), float32, symmetric, sums to 1

    Args:
        perplexity: effective number of neighbours; at most a third of the other points are taken.

    Raises:
        ValueError: there are fewer than 4 points, or the perplexity is less than 1.
    """
    n = len(distances)
    if n < 4:
        raise ValueError(f"distances has {n} points; at least 4 are needed")
    if not perplexity >= 1:
        raise ValueError(f"perplexity={perplexity} must be at least 1")
    wanted = math.log(max(min(perplexity, (n - 1) / 3), 1.0))
    gaps = distances.clone().fill_diagonal_(math.inf)
    gaps -= gaps.amin(1, keepdim=True)
    gaps.fill_diagonal_(0.0)
    gaps /= (gaps.sum(1, keepdim=True) / (n - 1)).clamp_(min=1e-300)
    weights, total = _gaussians(gaps.float(), wanted)
    weights /= total[:, None]
    return torch.threshold_((weights + weights.T).mul_(0.5 / n), LEAST_AFFINITY, 0.0)


def _gaussians(gaps: Tensor, wanted: float) -> tuple[Tensor, Tensor]:
    """Return exp(-precision * gap) off the diagonal, with entropies (nats) near `wanted`, and its row sums."""
    log_precision = (3.0 / gaps.std(1).clamp_(min=1e-6)).log_()  # (point,)
    low, high = log_precision - WIDEST, log_precision + WIDEST
    weights, products = torch.empty_like(gaps), torch.empty_like(gaps)
    for _ in range(MOST_ITERATIONS):
        precision = log_precision.exp()
        torch.mul(gaps, -precision[:, None], out=weights).clamp_(min=LEAST_EXPONENT).exp_().fill_diagonal_(0.0)
        total = weights.sum(1)
        mean = torch.mul(weights, gaps, out=products).sum(1) / total
        variance = products.mul_(gaps).sum(1) / total - mean * mean
        surplus = total.log() + precision * mean - wanted
        astray = surplus.abs() > ENTROPY_TOLERANCE
        if not astray.any():
            break
        low, high = torch.where(surplus > 0, log_precision, low), torch.where(surplus > 0, high, log_precision)
        newton = log_precision + (surplus / (precision.square() * variance).clamp_(min=1e-12)).clamp_(-2.0, 2.0)
        better = torch.where((newton > low) & (newton < high), newton, (low + high) / 2)
        log_precision = torch.where(astray, better, log_precision)
    return weights, total


class _Slope:
    """The gradient of the divergence of picture from data (van der Maaten and Hinton 2008, eq. 5), with reused buffers.

    Shapes:
        attraction: (point, point)
    """

    def __init__(self, attraction: Tensor) -> None:
        n = len(attraction)
        self._attraction = attraction
        self._kernel, self._balance = torch.empty_like(attraction), torch.empty_like(attraction)
        self._left, self._right = attraction.new_ones(n, 4), attraction.new_ones(4, n)
        self._charges, self._sums = attraction.new_ones(3, n), attraction.new_empty(3, n)

    def __call__(self, xy: Tensor, exaggeration: float) -> Tensor:
        """Return the gradient at a picture, both (2, point)."""
        squares = xy.square().sum(0)
        self._left[:, :2], self._left[:, 2] = xy.T, squares
        torch.mul(xy, -2.0, out=self._right[:2])
        torch.add(squares, 1.0, out=self._right[3])
        kernel = torch.mm(self._left, self._right, out=self._kernel).reciprocal_()  # 1 / (1 + squared distance)
        repulsion = 1.0 / (float(kernel.fill_diagonal_(0.0).sum()) * exaggeration)
        balance = torch.add(self._attraction, kernel, alpha=-repulsion, out=self._balance).mul_(kernel)
        self._charges[:2] = xy
        sums = torch.mm(self._charges, balance, out=self._sums)  # balance is symmetric
        return (xy * sums[2] - sums[:2]).mul_(4.0 * exaggeration)


@torch.no_grad()
def descend(
    attraction: Tensor, start: Tensor, phases: Sequence[Phase], *, held_to: Sequence[Tensor] = (), hold: float = 0.0
) -> Tensor:
    """Move points downhill from a start, with momentum and a gain for each coordinate (section 3.4 of the paper).

    Shapes:
        attraction: (point, point), from affinities; start, each of held_to, returns: (point, 2)

    Args:
        held_to: pictures whose places points are drawn to, with the same force however far a point is (above about 1):
            a point that belongs elsewhere still moves there, any other stays. Rauber et al. 2016 take a spring.
        hold: what a move by 1 costs, in nats of the mean over points that the divergence is.
    """
    n = len(attraction)
    slope, xy = _Slope(attraction), start.T.contiguous()
    anchors = [picture.T for picture in held_to]
    moves, gains = torch.zeros_like(xy), torch.ones_like(xy)
    for phase in counted(phases):
        for _ in counted(range(phase.steps)):
            gradient = slope(xy, phase.exaggeration)
            for anchor in anchors:
                away = xy - anchor
                gradient += away.mul_(hold / n / (away.square().sum(0) + 1.0).sqrt_())
            gains = torch.where(gradient * moves < 0, gains + 0.2, gains * 0.8).clamp_(min=LEAST_GAIN)
            moves = moves.mul_(phase.momentum).sub_(gradient.mul_(gains), alpha=phase.rate * n)
            xy += moves
            xy -= xy.mean(1, keepdim=True)
    return xy.T.contiguous()


def fresh(attraction: Tensor, x: Tensor, *, seed: int | None = None) -> Tensor:
    """Lay points out from scratch, starting from a tiny PCA picture; equal vectors all lie at 0.

    Shapes:
        attraction: (point, point); x: (point, d); returns: (point, 2), float32, of spread 1

    Args:
        seed: start from random places in its stead, as van der Maaten and Hinton 2008, algorithm 1, have it.
    """
    start = normalised(pca(x)).float()
    if not start.any():
        return start
    if seed is not None:
        random = torch.randn(start.shape, generator=torch.Generator().manual_seed(seed))
        return normalised(descend(attraction, random * FRESH_SPREAD, FRESH))
    shaken = torch.randn(start.shape, generator=torch.Generator().manual_seed(0)) * 0.01  # off the line of flat data
    return normalised(descend(attraction, (start + shaken) * FRESH_SPREAD, FRESH))


def follow(attraction: Tensor, previous: Tensor, *, hold: float = HOLD) -> Tensor:
    """Lay points out again that have moved a little in full, near to where they were.

    Each point starts at the mean place of those that attract it now, so that one whose neighbours have changed need not
    pass through all others; it is then drawn back to its former place as well.

    Shapes:
        attraction: (point, point); previous, returns: (point, 2), float32, of spread 1

    Args:
        hold: what a move by the whole spread costs, in nats.
    """
    size = WARM_SPREAD * math.sqrt(len(previous))
    held_to = previous * size
    start = attraction @ held_to / attraction.sum(1, keepdim=True)
    return normalised(descend(attraction, start, WARM, held_to=[held_to], hold=hold / size))
