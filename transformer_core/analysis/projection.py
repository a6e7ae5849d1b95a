"""Projection: the flattest honest picture, one scale for all frames, and turning a picture to match another.

PCA: Pearson 1901; orthogonal Procrustes: Schoenemann 1966. Read next: neighbours.py.
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


def pca(x: Tensor) -> Tensor:
    """Return the coordinates on the two axes of most variance, the greatest first.

    An axis points to the side that holds its furthest point, so that the same data give the same picture.

    Shapes:
        x: (point, d); returns: (point, 2), as x's type
    """
    centred = x.double() - x.double().mean(0)
    if centred.shape[1] < 2:
        centred = torch.nn.functional.pad(centred, (0, 2 - centred.shape[1]))
    axes = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, [-1, -2]]  # (d, 2)
    xy = centred @ axes
    furthest = xy.gather(0, xy.abs().argmax(0, keepdim=True))  # (1, 2)
    return (xy * torch.where(furthest < 0, -1.0, 1.0)).to(x.dtype)


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
