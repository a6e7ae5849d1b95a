"""A device that every machine has: it computes on the processor, under the rules of a card that has no float64.

It is what a GPU is to the code that uses it: its tensors have another device than the processor's, do not mix with
them, and reach NumPy through ``.cpu()`` alone. Like mps, it refuses float64, on the way to the processor as well, where
mps converts before it copies.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_iter, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from transformer_core import device as devices

NAME = "pretend"
PROCESSOR = torch.device("cpu")
MADE_THERE = ("empty.memory_format", "empty_strided", "arange", "arange.start", "arange.start_step", "linspace")
COPIES = ("aten::copy_", "aten::_to_copy", "aten::to", "aten::_copy_from")
INDEXES = ("aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_")


class OnDevice(Tensor):
    """A tensor on the device.

    Args:
        inner: the processor's tensor that holds its numbers.
    """

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "OnDevice":
        """Make it, of the same shape."""
        return Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    def __repr__(self) -> str:  # type: ignore[override]
        return f"OnDevice({self.inner})"

    def tolist(self) -> Any:
        """Return its numbers, as a card's tensor does; torch refuses that of subclasses."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Compute on the processor what is allowed on the device."""
        return _computed(func, args, kwargs or {})


def _computed(func: Any, args: tuple, kwargs: dict) -> Any:
    name = func._schema.name
    asked = [value for value in tree_iter((args, kwargs)) if isinstance(value, torch.device)]
    to = asked[0] if asked else None
    _refuse_what_does_not_mix(name, args, kwargs)
    inner_args, inner_kwargs = tree_map_only(OnDevice, lambda tensor: tensor.inner, (args, kwargs))
    inner_args, inner_kwargs = tree_map_only(torch.device, lambda _: PROCESSOR, (inner_args, inner_kwargs))
    found = func(*inner_args, **inner_kwargs)
    if func._schema.is_mutable and inner_args and found is inner_args[0]:
        return args[0]
    _refuse_float64(name, found)
    leaves = name == "aten::_local_scalar_dense" or (to is not None and to.type == "cpu")
    if leaves:
        return found
    a_view_of_weights = func.is_view and not args[0].is_inference()
    with torch.inference_mode(torch.is_inference_mode_enabled() and not a_view_of_weights):
        return tree_map_only(Tensor, OnDevice, found)


def _refuse_float64(name: str, found: Any) -> None:
    for tensor in tree_iter(found):
        if isinstance(tensor, Tensor) and tensor.dtype in (torch.float64, torch.complex128):
            raise TypeError(f"{name} makes {tensor.dtype} on the device, which has none: first .cpu(), then .double()")


def _refuse_what_does_not_mix(name: str, args: tuple, kwargs: dict) -> None:
    """Refuse a tensor of the processor beside one of the device, but for a copy, a scalar, and what indexes."""
    others = [each for each in tree_iter((args, kwargs)) if isinstance(each, Tensor) and not isinstance(each, OnDevice)]
    if name in COPIES:
        _refuse_float64(name, others)
        return
    if name in INDEXES and isinstance(args[0], OnDevice):
        others = [each for each in others if each.is_floating_point()]
    if any(each.dim() for each in others):
        shapes = [tuple(each.shape) for each in others]
        raise RuntimeError(f"{name} mixes tensors of the device with some of the processor, of shape {shapes}")


def _copy_from(source: Tensor, to: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy where torch leaves __torch_dispatch__ out: while it makes a tensor of numbers."""
    for one in (source, to):
        if not isinstance(one, OnDevice):
            _refuse_float64("aten::_copy_from", one)
    (to.inner if isinstance(to, OnDevice) else to).copy_(source.inner if isinstance(source, OnDevice) else source)
    return to


@cache
def register() -> torch.library.Library:
    """Tell torch of the device, once a process and before its first backward pass, which counts the devices."""
    _setup_privateuseone_for_python_backend(NAME)
    library = torch.library.Library("aten", "IMPL")

    def made_there(func: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: _computed(func, args, kwargs)

    for name in MADE_THERE:
        op, _, overload = name.partition(".")
        library.impl(name, made_there(getattr(getattr(torch.ops.aten, op), overload or "default")), "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    return library


class _Generator(torch.Generator):
    """Random numbers for the device, which the processor draws."""

    def __new__(cls, device: Any = PROCESSOR) -> torch.Generator:
        """Make a generator."""
        return cls.__base__(PROCESSOR if torch.device(device).type == NAME else device)


DEVICES = (NAME, pytest.param("cuda", marks=pytest.mark.gpu))


def computing_on(name: str, patch: pytest.MonkeyPatch) -> torch.device:
    """Let models compute on one of DEVICES, as VITRINE_DEVICE names it, and return it."""
    patch.setenv("VITRINE_DEVICE", name)
    if name == NAME:
        here = devices.devices_here()
        patch.setattr(devices, "devices_here", lambda: here | {NAME: 1})
        patch.setattr(torch, "Generator", _Generator)
        patch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)  # so that tied weights stay one
    return torch.device(name)
