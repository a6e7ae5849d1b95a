"""The trace: the tensors that one forward pass recorded, by their full names.

Read next: transformer_core/probe.py
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import torch
from torch import Tensor

from transformer_core.sites import Site, site_of


@lru_cache(maxsize=65_536)
def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a full name matches any of these glob patterns."""
    return any(re.match(fnmatch.translate(pattern), name) for pattern in patterns)


class Trace(Mapping[str, Tensor]):
    """The tensors that one forward pass recorded, by their full names, in the order they were computed.

    `gradients` holds the gradient of a loss with respect to each that has one, of the same name and shape, if any were
    asked for.
    """

    gradients: "Trace | None" = None

    def __init__(self, tensors: Mapping[str, Tensor] | None = None) -> None:
        self._tensors: dict[str, Tensor] = dict(tensors or {})

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self._tensors[name]
        except KeyError:
            raise KeyError(f"{name!r} was not recorded; recorded: {', '.join(self._tensors) or 'nothing'}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def nbytes(self) -> int:
        """Size in bytes of all recorded tensors and gradients."""
        own = sum(tensor.nbytes for tensor in self._tensors.values())
        return own if self.gradients is None else own + self.gradients.nbytes

    def select(self, pattern: str) -> "Trace":
        """Return the part whose names match a glob pattern, such as ``*.weights``."""
        return Trace({name: tensor for name, tensor in self._tensors.items() if matches(name, (pattern,))})

    def stack(self, pattern: str) -> Tensor:
        """Stack one site over layers.

        Shapes:
            returns: (layer, *axes of the site)

        Raises:
            ValueError: nothing recorded matches the pattern, or what matches is not of one shape.
        """
        found = self.select(pattern)
        if not found:
            raise ValueError(f"pattern={pattern!r} matches nothing recorded; recorded: {', '.join(self._tensors)}")
        shapes = {tuple(tensor.shape): name for name, tensor in found.items()}
        if len(shapes) > 1:
            kinds = ", ".join(f"{name} {shape}" for shape, name in shapes.items())
            raise ValueError(f"pattern={pattern!r} matches tensors of several shapes: {kinds}; name one site")
        return torch.stack(list(found.values()))

    def site(self, name: str) -> Site:
        """Return the row of SITES that describes a recorded tensor."""
        return site_of(name)
