"""Kept passes: the last short forward passes, so that one pass answers all questions about a text.

A pass is found again by its model, with the very weights that it had, and by what it read and recorded.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from torch import Tensor, nn

from transformer_core.packed_linear import optimizer_steps

MB = 1 << 20
MOST, MOST_BYTES, MOST_BYTES_OF_ONE = 64, 64 * MB, 8 * MB
_kept: "OrderedDict[Hashable, Sized]" = OrderedDict()
_lock = threading.Lock()


class Sized(Protocol):
    """What a pass returns, which nobody writes into."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        ...


S = TypeVar("S", bound=Sized)


def kept_pass(model: nn.Module, about: Hashable, compute: Callable[[], S]) -> S:
    """Return what a pass computes, or what it computed the last time.

    Of a model that is being trained, nothing is kept: its dropout differs from pass to pass. What is larger than a few
    MB is not kept either; the least recently asked are forgotten.

    Args:
        about: what the pass reads and records.
        compute: makes the pass.
    """
    if model.training:
        return compute()
    question = (weakref.ref(model), _weights_of(model), about)
    with _lock:
        found = _kept.get(question)
        if found is not None:
            _kept.move_to_end(question)
            return found  # type: ignore[return-value]
    made = compute()
    if made.nbytes <= MOST_BYTES_OF_ONE:
        with _lock:
            _kept[question] = made
            while len(_kept) > MOST or sum(one.nbytes for one in _kept.values()) > MOST_BYTES:
                _kept.popitem(last=False)
    return made


def _weights_of(model: nn.Module) -> Hashable:
    """Return what changes with a model's weights; writing through ``weight.data`` escapes it, as in packed_linear."""
    return optimizer_steps(), *map(_state_of, model.parameters())


def _state_of(weight: Tensor) -> tuple[int, int]:
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version
