"""A run's film with t-SNE fitted afresh at each frame, beside the film's own, which follows the points.

The sentence vectors of each frame are the run's; the same t-SNE draws them twice. A map fitted afresh may turn, mirror
and rearrange its clusters, since nothing but neighbourhoods counts (van der Maaten and Hinton 2008, eq. 5); following
points: Rauber et al. 2016.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import torch

from transformer_core.config import require_choice
from transformer_core.layout.neighbours import displacement, squared_distances, trustworthiness
from transformer_core.layout.pca import turned_onto
from transformer_core.layout.sequence import NEIGHBOURS
from transformer_core.layout.tsne import affinities, fresh
from transformer_core.progress import counted
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.folder import default_root

Start = Literal["random", "pca"]
FEWEST = 2


@dataclass(frozen=True, eq=False)
class RefittedMaps:
    """Both maps of each frame, and how far points move from one frame to the next.

    Shapes:
        numbers, steps, epochs: (frame,); labels, held_out: (point,)
        aligned, refitted: (frame, point, 2), of spread 1
        aligned_moved, refitted_moved, turned_moved: (frame,), mean distance that points moved since the frame before,
            in units of the map's spread; NaN for the first
        aligned_trust, refitted_trust: (frame,), trustworthiness

    Args:
        numbers: of the frames in the run.
        turned_moved: of the fitted maps, each turned and mirrored onto the one before as well as can be.
        held_out: True for points that were never trained on.
        classes: names of the labels.
    """

    numbers: np.ndarray
    steps: np.ndarray
    epochs: np.ndarray
    labels: np.ndarray
    held_out: np.ndarray
    classes: tuple[str, ...]
    aligned: np.ndarray
    refitted: np.ndarray
    aligned_moved: np.ndarray
    refitted_moved: np.ndarray
    turned_moved: np.ndarray
    aligned_trust: np.ndarray
    refitted_trust: np.ndarray

    @property
    def mean_moved(self) -> tuple[float, float, float]:
        """The mean over frames of how far points move: aligned, fitted afresh, and fitted afresh and turned."""
        aligned, refitted, turned = (
            float(np.mean(moved[1:])) for moved in (self.aligned_moved, self.refitted_moved, self.turned_moved)
        )
        return aligned, refitted, turned


def refitted_maps(*, run: str, frames: int, start: Start) -> RefittedMaps:
    """Fit t-SNE afresh at each frame of a run, and measure how far points move beside the run's own maps.

    Args:
        run: id of a classifier's run.
        frames: how many frames are taken, from the first on.
        start: "random" begins each fit at random places of its own; "pca" at the frame's own PCA.

    Raises:
        RunError: the run cannot be read.
        ValueError: it has no points, or fewer than two of so many frames have a map; there is no such start.
    """
    require_choice("start", start, get_args(Start))
    store = RunList(default_root()).open(run)
    points, of_number = store.points(), {frame.number: frame for frame in store.frames()}
    drawn = [layout for layout in store.layouts() if layout.method == "tsne" and layout.frame in of_number][:frames]
    if points is None or len(drawn) < FEWEST:
        raise ValueError(f"frames={frames} of run={run!r:.40} must have at least {FEWEST} with a map of points")
    aligned = [torch.tensor(layout.xy) for layout in drawn]
    refitted, refitted_trust, aligned_trust = [], [], []
    for layout, ours in counted(list(zip(drawn, aligned, strict=True))):
        x = torch.tensor(store.embeddings(layout.frame))
        distances = squared_distances(x)
        xy = fresh(affinities(distances), x, seed=layout.frame if start == "random" else None)
        k = min(NEIGHBOURS, (len(x) - 1) // 2)
        refitted.append(xy)
        refitted_trust.append(trustworthiness(x, xy, k=k, distances=distances))
        aligned_trust.append(trustworthiness(x, ours, k=k, distances=distances))
    turned = [turned_onto(xy, before) for before, xy in pairwise(refitted)]
    return RefittedMaps(
        numbers=np.array([layout.frame for layout in drawn]),
        steps=np.array([of_number[layout.frame].step for layout in drawn]),
        epochs=np.array([of_number[layout.frame].epoch for layout in drawn]),
        labels=points.labels,
        held_out=points.held_out,
        classes=tuple(store.facts().get("labels") or map(str, sorted(set(points.labels.tolist())))),
        aligned=torch.stack(aligned).numpy(),
        refitted=torch.stack(refitted).numpy(),
        aligned_moved=_moved(aligned[1:], aligned),
        refitted_moved=_moved(refitted[1:], refitted),
        turned_moved=_moved(turned, refitted),
        aligned_trust=np.array(aligned_trust),
        refitted_trust=np.array(refitted_trust),
    )


def _moved(later: list[torch.Tensor], before: list[torch.Tensor]) -> np.ndarray:
    return np.array([np.nan, *map(displacement, later, before[:-1])])
