"""Layouts: the same points drawn flat at every frame of a run, each frame lined up with the one before.

Following points with t-SNE: Rauber et al. 2016.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from transformer_core.layout.neighbours import (
    displacement,
    neighbour_accuracy,
    squared_distances,
    trustworthiness,
)
from transformer_core.layout.pca import normalised, pca, turned_onto
from transformer_core.layout.tsne import HOLD, PERPLEXITY, affinities, follow, fresh

Method = Literal["tsne", "pca"]
LEAST_POINTS = 4
NEIGHBOURS = 10


@dataclass(frozen=True, eq=False)
class FrameLayout:
    """One frame drawn by one method.

    Shapes:
        xy: (point, 2), float32

    Args:
        xy: centred, with a root mean square distance of 1 from the centre at every frame, so that axes can stay: nearly
            all points lie within 3 of the centre.
        measures: "trustworthiness" of the picture; "displacement" from the frame before, 0 for the first; and the same
            for every method, since in full, "neighbours_train" and "neighbours_held_out": accuracy of the nearest
            neighbours' vote, each only where there are such points.
    """

    xy: np.ndarray
    measures: dict[str, float]


class LayoutSequence:
    """Lays out frame after frame, each near to the one before.

    Its only state is the last frame's coordinates: a sequence resumed from them gives exactly the same numbers.

    Args:
        previous: places of the last frame by method, to resume from; None for a new sequence.
        perplexity: of t-SNE.
        hold: what it costs a point of t-SNE to move by the whole spread, in nats; see tsne.follow.
    """

    def __init__(
        self, previous: Mapping[Method, np.ndarray] | None = None, *, perplexity: float = PERPLEXITY, hold: float = HOLD
    ) -> None:
        self._previous = {method: torch.tensor(xy, dtype=torch.float32) for method, xy in (previous or {}).items()}
        self._perplexity, self._hold = perplexity, hold

    @torch.no_grad()
    def add(
        self, embeddings: Tensor | np.ndarray, labels: Sequence[int], held_out: Sequence[bool]
    ) -> dict[Method, FrameLayout]:
        """Lay out the next frame.

        Shapes:
            embeddings: (point, d), in the same order at every frame; labels, held_out: (point,)

        Raises:
            ValueError: there are fewer than 4 points, another number than before, or a value is not finite.
        """
        x = embeddings if isinstance(embeddings, Tensor) else torch.tensor(embeddings)
        x = x.detach().float().cpu()
        if len(x) < LEAST_POINTS:
            raise ValueError(f"embeddings has {len(x)} points; at least {LEAST_POINTS} are needed")
        for method, xy in self._previous.items():
            if xy.shape != (len(x), 2):
                raise ValueError(f"embeddings has {len(x)} points; the {method} before has {tuple(xy.shape)}")
        if not torch.isfinite(x).all():
            raise ValueError("embeddings holds values that are infinite or not numbers; every one must be finite")
        distances = squared_distances(x)  # (point, point)
        places = {"tsne": self._tsne(x, distances), "pca": normalised(pca(x))}
        parts = torch.tensor(np.asarray(labels)), torch.tensor(np.asarray(held_out, dtype=bool))  # (point,) each
        train, rest = neighbour_accuracy(x, *parts, distances=distances)
        shared = {"neighbours_train": train, "neighbours_held_out": rest}
        k = min(NEIGHBOURS, (len(x) - 1) // 2)
        layouts = {}
        for method, xy in places.items():
            before = self._previous.get(method)
            xy = xy if before is None else turned_onto(xy, before)
            measures = shared | {
                "trustworthiness": trustworthiness(x, xy, k=k, distances=distances),
                "displacement": 0.0 if before is None else displacement(xy, before),
            }
            self._previous[method] = xy
            known = {name: value for name, value in measures.items() if not math.isnan(value)}
            layouts[method] = FrameLayout(xy.numpy().copy(), known)
        return layouts

    def _tsne(self, x: Tensor, distances: Tensor) -> Tensor:
        attraction, before = affinities(distances, perplexity=self._perplexity), self._previous.get("tsne")
        if before is None or not before.any():
            return fresh(attraction, x)
        return follow(attraction, before, hold=self._hold)
