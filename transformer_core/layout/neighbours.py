"""Nearest neighbours: how far a flat picture can be trusted, and how well classes are separated in the full space.

Trustworthiness: Venna and Kaski 2001.
"""

import math

import torch
from torch import Tensor

from transformer_core.layout.pca import spread

ROUNDING = 1e-13
FLAT = 1e-6  # of the vectors' length: float32 tells no finer differences apart


def squared_distances(x: Tensor, others: Tensor | None = None) -> Tensor:
    """Return the squared Euclidean distances between rows, in float64; rows that are equal have distance 0.

    Shapes:
        x: (point, d); others: (other, d), x itself where None; returns: (point, other)

    Raises:
        ValueError: a shape does not fit, or a value is infinite or not a number.
    """
    x = _checked("x", x).double()
    others = x if others is None else _checked("others", others).double()
    if x.shape[1] != others.shape[1]:
        raise ValueError(f"others has {others.shape[1]} columns; x has {x.shape[1]}, and both need as many")
    origin = others[:1]
    x, others = x - origin, others - origin
    x_squares, other_squares = x.square().sum(1), others.square().sum(1)
    distances = torch.addmm(other_squares.expand(len(x), -1), x, others.T, alpha=-2).add_(x_squares[:, None])
    noise = ROUNDING * float(torch.maximum(x_squares.max(), other_squares.max()))
    return torch.threshold_(distances, noise, 0.0)


def nearest(distances: Tensor, k: int, *, without_self: bool = True) -> Tensor:
    """Return the places of each row's k smallest distances, the smallest first.

    Shapes:
        distances: (point, other), square where without_self; returns: (point, k)

    Raises:
        ValueError: there are not k others.
    """
    most = distances.shape[1] - int(without_self)
    if not 1 <= k <= most:
        raise ValueError(f"k={k} must be from 1 to {most}, the number of other points")
    if without_self:
        distances = distances.clone().fill_diagonal_(math.inf)
    return distances.topk(k, dim=1, largest=False).indices


@torch.no_grad()
def trustworthiness(x: Tensor, xy: Tensor, *, k: int = 10, distances: Tensor | None = None) -> float:
    """Return how many of the neighbours that a picture shows are neighbours indeed: 1 where all are.

    1 - 2 / (n k (2n - 3k - 1)) * sum over points i and those of their k nearest in the picture that are not among their
    k nearest in full, of (rank of the neighbour in full - k); Venna and Kaski 2001. At random it is about 0.5;
    neighbours at equal distances all have the best rank of theirs, so that equal vectors may be shown anywhere. Where
    all vectors are the same but for rounding, as those of a run that diverged, none is nearer: it is nan.

    Shapes:
        x: (point, d); xy: (point, 2); distances: (point, point)

    Args:
        k: neighbours to look at, less than half the points.
        distances: squared_distances(x), where they are known already.

    Raises:
        ValueError: x and xy differ in their points, or k is out of range.
    """
    n = len(x)
    if len(xy) != n:
        raise ValueError(f"xy has {len(xy)} points; x has {n}, and both need as many")
    if not 1 <= k < n / 2:
        raise ValueError(f"k={k} must be from 1 to less than half of the {n} points")
    full = squared_distances(x) if distances is None else distances
    if float(full.max()) <= FLAT**2 * float(x.float().square().sum(1).mean()):
        return math.nan
    full = full.clone().fill_diagonal_(math.inf)
    shown = nearest(squared_distances(xy), k)  # (point, k)
    excess = 0
    for column in full.gather(1, shown).split(1, dim=1):
        rank = (full < column).sum(1) + 1  # (point,)
        excess += int((rank - k).clamp_(min=0).sum())
    return 1.0 - 2.0 * excess / (n * k * (2 * n - 3 * k - 1))


@torch.no_grad()
def neighbour_accuracy(
    x: Tensor, labels: Tensor, held_out: Tensor, *, k: int = 10, distances: Tensor | None = None
) -> tuple[float, float]:
    """Return the accuracy of guessing a point's class from its k nearest points of the training part.

    The class with most votes is guessed; among equals, the one whose voters are nearer. A training point does not vote
    for itself. Where there are fewer than k voters, all of them vote.

    Shapes:
        x: (point, d); labels: (point,), class numbers from 0; held_out: (point,), bool; distances: (point, point)

    Args:
        distances: squared_distances(x), where they are known already.

    Returns:
        The accuracy on training points and on held-out points, in [0, 1]; NaN for an empty part.

    Raises:
        ValueError: the arguments differ in their points.
    """
    if not len(x) == len(labels) == len(held_out):
        raise ValueError(f"labels={len(labels)} and held_out={len(held_out)} must have as many points as x={len(x)}")
    distances = squared_distances(x) if distances is None else distances
    train, rest = (part.nonzero().flatten() for part in (~held_out, held_out))
    distances, voters = distances[:, train], labels[train].long()
    return (
        _accuracy(distances[train], voters, labels[train], min(k, len(train) - 1), without_self=True),
        _accuracy(distances[rest], voters, labels[rest], min(k, len(train)), without_self=False),
    )


def _accuracy(distances: Tensor, voters: Tensor, labels: Tensor, k: int, *, without_self: bool) -> float:
    if k < 1 or not len(labels):
        return math.nan
    votes = voters[nearest(distances, k, without_self=without_self)]  # (point, k)
    # nearer neighbours count for more, but all of these bonuses together for less than one vote
    weights = 1.0 + torch.arange(k, 0, -1, dtype=torch.float64) / (k * (k + 1))
    counts = torch.zeros(len(labels), int(voters.max()) + 1, dtype=torch.float64)  # (point, class)
    counts.scatter_add_(1, votes, weights.expand(len(labels), -1))
    return float((counts.argmax(1) == labels).double().mean())


def displacement(xy: Tensor, previous: Tensor) -> float:
    """Return the mean distance that points moved, in units of the spread of `xy`; 0 where that is 0.

    Shapes:
        xy, previous: (point, 2)

    Raises:
        ValueError: the shapes differ.
    """
    if xy.shape != previous.shape:
        raise ValueError(f"previous of shape {tuple(previous.shape)} must have xy's shape, {tuple(xy.shape)}")
    size = spread(xy)
    return float((xy - previous).square().sum(1).sqrt().mean()) / size if size > 0 else 0.0


@torch.no_grad()
def place_by_neighbours(x: Tensor, points: Tensor, xy: Tensor, *, k: int = 5) -> Tensor:
    """Return where new vectors belong in a picture: the mean place of their k nearest points in full.

    Each point weighs 1 / (squared distance in full), so that a vector equal to a point's lies at its place (Shepard
    1968, eq. 1 with u = 2).

    Shapes:
        x: (new, d); points: (point, d); xy: (point, 2); returns: (new, 2), as xy's type

    Raises:
        ValueError: points and xy differ in number, or there are not k points.
    """
    if len(points) != len(xy):
        raise ValueError(f"xy has {len(xy)} points; points has {len(points)}, and both need as many")
    distances = squared_distances(x, points)
    places = nearest(distances, k, without_self=False)  # (new, k)
    near = distances.gather(1, places)
    weights = 1.0 / (near + near.mean().clamp(min=1e-30) * 1e-9)
    weights /= weights.sum(1, keepdim=True)
    return (weights[..., None] * xy[places].double()).sum(1).to(xy.dtype)


def _checked(name: str, x: Tensor) -> Tensor:
    if x.dim() != 2 or not len(x):
        raise ValueError(f"{name} of shape {tuple(x.shape)} must be (point, column) with at least one point")
    if not torch.isfinite(x).all():
        raise ValueError(f"{name} holds values that are infinite or not numbers; every one must be finite")
    return x
