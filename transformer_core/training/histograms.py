"""Histograms of a model's weights, gradients and updates by layer, of how large their numbers are.

The bins are fixed, in powers of ten, so that frames and runs can be compared: a distribution of magnitudes on a
logarithmic axis shows at once what a linear one hides, as in Micikevicius et al. 2018, figure 3.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

QUANTITIES = ("weights", "gradients", "updates")
LOWEST, HIGHEST, PER_POWER = -10, 2, 4  # powers of ten, and bins in each
BINS = 1 + (HIGHEST - LOWEST) * PER_POWER
AT_ONCE = 1 << 20  # numbers, so that counting takes little memory
MOST_GROUPS = 40  # two stacks of 12 layers, embeddings and output, and some room
LAYER = re.compile(r"(\w+)\.stack\.layers\.(\d+)\.")
RECURRENT = re.compile(r"(recurrent|encoder|decoder)\.(?!stack\.)")


@dataclass(frozen=True, eq=False)
class Histograms:
    """How large the numbers of each group of parameters are, in one moment of a run.

    Shapes:
        counts: (quantity, group, bin) uint32, quantities as QUANTITIES has them
        rms: (quantity, group) float32, root mean squares

    Bin 0 counts magnitudes below 10^LOWEST, zeros among them; bin k from 1 on those from 10^(LOWEST + (k - 1) /
    PER_POWER) up to the next; the last takes all above, too.

    Args:
        groups: "embeddings", "encoder.0" and so on for the layers of a stack, "recurrent" or "encoder" for a recurrent
            network, and "output" for all behind the last layer.
    """

    groups: tuple[str, ...]
    counts: np.ndarray
    rms: np.ndarray


def group_of(name: str) -> str:
    """Return which group the parameter of a name belongs to."""
    if "embedding" in name:
        return "embeddings"
    if found := LAYER.search(name):
        return f"{found[1]}.{found[2]}"
    found = RECURRENT.match(name)
    return found[1] if found else "output"


@torch.no_grad()
def histograms(model: nn.Module, before: Mapping[str, Tensor] | None) -> Histograms:
    """Return the histograms of a model after a step.

    Gradients are those that the step used, after clipping; an update is what the step changed a weight by.

    Args:
        before: every parameter before the step, by name; None where none was taken: then gradients and updates are not
            there, and their counts are 0.
    """
    named = dict(model.named_parameters())
    members: dict[str, list[str]] = {}
    for name in named:
        members.setdefault(group_of(name), []).append(name)
    last = {"embeddings": -1, "output": 1}
    groups = tuple(sorted(members, key=lambda group: last.get(group, 0)))
    counts = np.zeros((len(QUANTITIES), len(groups), BINS), np.uint32)
    rms = np.zeros((len(QUANTITIES), len(groups)), np.float32)
    for place, group in enumerate(groups):
        parts: list[Iterable[Tensor]] = [[named[name] for name in members[group]]]
        if before is not None:
            weights = [(named[name], before[name]) for name in members[group]]
            parts.append(weight.grad for weight, _ in weights if weight.grad is not None)
            parts.append(weight - was for weight, was in weights)
        for quantity, tensors in enumerate(parts):
            counts[quantity, place], rms[quantity, place] = _counted(tensors)
    return Histograms(groups, counts, rms)


def _counted(tensors: Iterable[Tensor]) -> tuple[np.ndarray, float]:
    """Return how many of their numbers each bin holds, and the root mean square of all."""
    counts, square = np.zeros(BINS, np.int64), 0.0
    for part in (part for tensor in tensors for part in tensor.flatten().split(AT_ONCE)):
        sizes = part.float().nan_to_num().abs()
        bins = ((sizes.log10() - LOWEST) * PER_POWER).floor().clamp(-1, BINS - 2).long() + 1
        counts += torch.bincount(bins, minlength=BINS).cpu().numpy()
        square += float(sizes.double().square().sum())
    return counts, min(np.sqrt(square / max(1, counts.sum())), float(np.finfo(np.float32).max))
