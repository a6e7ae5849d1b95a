"""Steps: how a loop over positions shows its insides: each step where it happens, all of them as one tensor.

Read next: cells.py.
"""

import torch
from torch import Tensor

from transformer_core.probe import SILENT, Probe


class Steps:
    """Hand each step's tensors to a probe, and record them side by side when the loop is done.

    An edit is called once a position, with a tensor that has one position, since what comes later rests on it.

    Args:
        probe: in the scope of the loop.
        axis: where the axis of positions shall stand.
    """

    def __init__(self, probe: Probe, axis: int = 1) -> None:
        self._probe, self._axis, self._silent = probe, axis, probe is SILENT
        self._kept: dict[str, list[Tensor]] = {}

    def tap(self, leaf: str, tensor: Tensor) -> Tensor:
        """Return a step's tensor, which lacks the axis of positions, edited where the caller asked for an edit."""
        if self._silent or not self._probe.wants(leaf):
            return tensor
        used = self._probe.edit(leaf, tensor.unsqueeze(self._axis))
        self._kept.setdefault(leaf, []).append(used)
        return used.squeeze(self._axis)

    def close(self, *, backward: bool = False) -> None:
        """Record what was tapped, in the order of positions; `backward` says that the loop began at the last."""
        for leaf, steps in self._kept.items():
            self._probe.record(leaf, torch.cat(steps[::-1] if backward else steps, self._axis))
