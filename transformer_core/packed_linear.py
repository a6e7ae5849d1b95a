"""nn.Linear, y = x W^T + b, made faster on a CPU when no gradient is needed.

A large weight is packed once into the layout that oneDNN multiplies by; a small one is multiplied faster as it is
(DECISIONS.md).
"""

import os
import weakref

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

PACKING = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
_multiply = torch.ops.mkldnn._linear_pointwise.default if PACKING else None
_PACK_FOR_ROWS = 128
PACKED_FROM, PACKED_TO = 500_000, 64_000_000  # entries of a weight: packing costs more than it saves, or much memory
# oneDNN and torch's layer above it keep what they prepared for each number of rows, about 1 MB each: by default 1,024.
for _kept in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_kept, "32")


def _count_step(optimizer: torch.optim.Optimizer, *_: object) -> None:
    for group in optimizer.param_groups:
        for weight in group["params"]:
            weight.optimizer_steps = getattr(weight, "optimizer_steps", 0) + 1


def version_of(weight: Tensor) -> tuple[int, int]:
    """Return what differs once a weight was changed: its version, and how many steps optimizers made of it."""
    return 0 if weight.is_inference() else weight._version, getattr(weight, "optimizer_steps", 0)


register_optimizer_step_post_hook(_count_step)  # a fused optimizer bypasses the version counter


def _fit(input: Tensor, weight: Tensor) -> bool:
    return (
        PACKED_FROM <= weight.numel() <= PACKED_TO
        and input.is_cpu
        and weight.is_cpu
        and input.dtype == weight.dtype == torch.float32
        and not weight.is_inference()
        and not torch.is_autocast_enabled("cpu")
    )


class Linear(nn.Linear):
    """nn.Linear with the same parameters, state and results; only its speed in inference mode on a CPU differs.

    The packed copy is remade when the weight is replaced or changed in place (torch's version counter tells), and
    after every step of an optimizer that has it; writing through ``weight.data`` bypasses both, so use
    ``torch.no_grad()`` and the weight itself.
    """

    _packed: tuple[weakref.ref, tuple[int, tuple[int, int]], Tensor] | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        weight, bias = self._parameters.get("weight"), self._parameters.get("bias")
        if weight is None:  # it was made an attribute of another kind, as by a parametrization
            return F.linear(input, self.weight, self.bias)
        if _multiply is None or not torch.is_inference_mode_enabled() or not _fit(input, weight):
            return F.linear(input, weight, bias)
        return _multiply(input, self._packed_weight(weight), bias, "none", [], "")

    def _packed_weight(self, weight: Tensor) -> Tensor:
        packed = self._packed
        stamp = (weight.data_ptr(), version_of(weight))
        if packed is None or packed[0]() is not weight or packed[1] != stamp:
            layout = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _PACK_FOR_ROWS)
            packed = self._packed = (weakref.ref(weight), stamp, layout)
        return packed[2]

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name != "_packed"}
