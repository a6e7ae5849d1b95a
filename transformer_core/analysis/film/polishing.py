"""Polishing: all frames of a run that is over, each drawn to the one after as to the one before.

Rauber et al. 2016 hold successive pictures together likewise. Read next: moments.py.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch

from transformer_core.analysis.film.tsne import HOLD, PERPLEXITY, WARM_SPREAD, Phase, affinities, descend
from transformer_core.analysis.neighbours import squared_distances
from transformer_core.analysis.projection import normalised, turned_onto

PASSES = 2
STEPS = (Phase(60, 1.0, 1 / 6, 0.8),)


@torch.no_grad()
def polish(
    frames: Sequence[np.ndarray], places: Sequence[np.ndarray], *, perplexity: float = PERPLEXITY, hold: float = HOLD
) -> list[np.ndarray]:
    """Move all t-SNE pictures of a run so that points wander less between them.

    One frame at a time goes downhill while its neighbours in time stay: from the last frame to the first, then back.

    Shapes:
        frames: each (point, d); places, returns: each (point, 2), float32, of spread 1

    Args:
        frames: the vectors of each frame.
        places: their pictures as LayoutSequence drew them.
        hold: what a move by the whole spread to a neighbouring frame costs, in nats.

    Raises:
        ValueError: frames and places differ in number.
    """
    if len(frames) != len(places):
        raise ValueError(f"places has {len(places)} frames; frames has {len(frames)}, and both need as many")
    if not frames:
        return []
    size = WARM_SPREAD * math.sqrt(len(places[0]))
    pictures = [torch.tensor(xy) * size for xy in places]
    for number in range(PASSES):
        order = range(len(pictures))
        for place in order if number % 2 else reversed(order):
            beside = pictures[max(place - 1, 0) : place] + pictures[place + 1 : place + 2]
            attraction = affinities(squared_distances(torch.tensor(frames[place])), perplexity=perplexity)
            pictures[place] = descend(attraction, pictures[place], STEPS, held_to=beside, hold=hold / size)
    lined_up = [normalised(pictures[0])]
    for xy in pictures[1:]:
        lined_up.append(turned_onto(normalised(xy), lined_up[-1]))
    return [xy.numpy() for xy in lined_up]
