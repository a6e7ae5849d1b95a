"""Kept passes: the last short forward passes, so that one pass answers all questions about a text.

A pass is found again by its model, with the very weights that it had, and by what it read and recorded.
"""

import threading
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from cachetools import LRUCache
from torch import nn

from transformer_core.packed_linear import version_of
from transformer_core.untrusted.archives import MB

MOST, MOST_BYTES, MOST_BYTES_OF_ONE = 64, 64 * MB, 8 * MB


class Sized(Protocol):
    """What a pass returns, which nobody writes into."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        ...


S = TypeVar("S", bound=Sized)


@dataclass(frozen=True, eq=False)
class _Kept:
    """What a pass returned, and the weights that it had, each with its version."""

    made: Any
    weights: tuple[tuple[weakref.ref[nn.Parameter], tuple[int, int]], ...]

    def is_of(self, model: nn.Module) -> bool:
        """Tell whether the model has these weights still; writing through ``weight.data`` escapes it."""
        now = list(model.parameters())
        return len(now) == len(self.weights) and all(
            kept() is weight and version == version_of(weight)
            for (kept, version), weight in zip(self.weights, now, strict=True)
        )


def _bytes_of(kept: _Kept) -> int:
    return max(kept.made.nbytes, MOST_BYTES // MOST)


_kept: LRUCache[Hashable, _Kept] = LRUCache(MOST_BYTES, getsizeof=_bytes_of)
_lock = threading.Lock()


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
    question = (weakref.ref(model), about)
    with _lock:
        found = _kept.get(question)
        if found is not None and found.is_of(model):
            return found.made
    weights = tuple((weakref.ref(weight), version_of(weight)) for weight in model.parameters())
    kept = _Kept(compute(), weights)
    if kept.made.nbytes <= MOST_BYTES_OF_ONE:
        with _lock:
            _kept[question] = kept
    return kept.made
