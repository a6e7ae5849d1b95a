"""PCA to two dimensions, one scale for all frames, and the rotation that matches one picture to another.

PCA: Pearson 1901; orthogonal Procrustes: Schoenemann 1966.
"""

import torch
from torch import Tensor


def spread(xy: Tensor) -> float:
    """Return the root mean square distance of points from their centre."""
    return float((xy - xy.mean(0)).square().sum(1).mean().sqrt())


def normalised(xy: Tensor) -> Tensor:
    """Centre a picture and give it a spread of 1; points that are all in one place stay there, at 0.

    Shapes:
        xy, returns: (point, 2)
    """
    centred, size = xy - xy.mean(0), spread(xy)
    return centred / size if size > 0 else torch.zeros_like(xy)


def _principal(x: Tensor, axes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return x centred, the variances along all axes and the first axes, the greatest first, in float64."""
    centred = x.double() - x.double().mean(0)
    if centred.shape[1] < axes:
        centred = torch.nn.functional.pad(centred, (0, axes - centred.shape[1]))
    variances, directions = torch.linalg.eigh(centred.T @ centred)
    return centred, variances.flip(0), directions.flip(1)[:, :axes]


def pca(x: Tensor, *, axes: int = 2) -> Tensor:
    """Return the coordinates on the axes of most variance, the greatest first.

    An axis points to the side that holds its furthest point, so that the same data give the same picture.

    Shapes:
        x: (point, d); returns: (point, axes), as x's type
    """
    centred, _, directions = _principal(x, axes)
    xy = centred @ directions
    furthest = xy.gather(0, xy.abs().argmax(0, keepdim=True))  # (1, axes)
    return (xy * torch.where(furthest < 0, -1.0, 1.0)).to(x.dtype)


def variance_shares(x: Tensor) -> Tensor:
    """Return the share of the variance along each axis of PCA, the greatest first; 0 where all points coincide.

    Shapes:
        x: (point, d); returns: (d,), float64
    """
    variances = _principal(x, 1)[1].clamp(min=0.0)
    return variances / variances.sum().clamp(min=1e-300)


def turned_onto(xy: Tensor, previous: Tensor) -> Tensor:
    """Turn and mirror a centred picture so that its points lie as near as can be to where they were.

    The orthogonal Q that minimises |xy Q - previous| is U V^T, where U S V^T = xy^T previous (Schoenemann 1966).

    Shapes:
        xy, previous, returns: (point, 2)

    Raises:
        ValueError: the shapes differ.
    """
    if xy.shape != previous.shape:
        raise ValueError(f"previous of shape {tuple(previous.shape)} must have xy's shape, {tuple(xy.shape)}")
    u, _, vh = torch.linalg.svd(xy.T.double() @ previous.double())
    return xy @ (u @ vh).to(xy.dtype)
