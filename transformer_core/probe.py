"""The probe: records the tensors of a forward pass, and lets a caller edit them.

One mechanism for heatmaps, ablation, painted masks, patching and gradients; no hooks, no state on the model.
Read next: transformer_core/layers/dropout.py
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from transformer_core.trace import Trace, matches

Edit = Callable[[Tensor], Tensor]
DEFAULT_MAX_BYTES = 1 << 30


class TraceTooLarge(ValueError):  # noqa: N818
    """A capture would keep more bytes than its bound allows."""


class _Enough(Exception):  # noqa: N818
    """What a pass was made for is recorded."""


class Probe:
    """Record and edit the tensors of one forward pass.

    A probe belongs to one call in one thread; the model it is handed to may be shared by many.

    Args:
        sites: glob patterns of the full names to record, such as ``("encoder.layer0.*", "*.weights")``.
        edits: by glob pattern, functions from a tensor to the tensor that the model uses in its place
            (same shape). What is recorded is what the model used: the edited tensor. A function gets a copy, which it
            may change in place.
        max_bytes: bound on the recorded bytes.
        until: a glob pattern; the pass ends with the first tensor recorded that it matches. None: it ends by itself.
        differentiates: `gradients` will be asked of the recorded tensors; their bytes count twice.

    Raises:
        TraceTooLarge: at the first tensor that would exceed max_bytes.
        ValueError: an edit returns another shape.
    """

    def __init__(
        self,
        sites: tuple[str, ...] = ("*",),
        *,
        edits: Mapping[str, Edit] | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        until: str | None = None,
        differentiates: bool = False,
    ) -> None:
        if isinstance(sites, str):
            raise ValueError(f"sites={sites!r} must be a tuple of patterns, such as ({sites!r},)")
        self.trace = Trace()
        self._sites = tuple(sites)
        self._edits = dict(edits or {})
        self._edit_patterns = tuple(self._edits)
        self._max_bytes = max_bytes
        self._bytes = [0]
        self._until = until
        self.differentiates = differentiates
        self._used: dict[str, tuple[tuple[Tensor, ...], int]] = {}  # what the model used, and the axis it lies along
        self.applied: set[str] = set()
        self._scope = ""
        self._parent: Probe | None = None

    def at(self, scope: str) -> "Probe":
        """Return this probe one scope deeper, to pass on or to enter with ``with``."""
        child = object.__new__(Probe)
        child.__dict__.update(self.__dict__)
        child._scope = f"{self._scope}{scope}."
        child._parent = self
        return child

    def __enter__(self) -> "Probe":
        assert self._parent is not None
        self._outer, self._parent._scope = self._parent._scope, self._scope
        return self

    def __exit__(self, *_: object) -> None:
        assert self._parent is not None
        self._parent._scope = self._outer

    def wants(self, *leaves: str) -> bool:
        """Return whether any of these sites, in the present scope, is recorded or edited."""
        return any(
            matches(self._scope + leaf, self._sites) or matches(self._scope + leaf, self._edit_patterns)
            for leaf in leaves
        )

    def tap(self, leaf: str, tensor: Tensor) -> Tensor:
        """Record a tensor under its site and return it, edited where the caller asked for an edit."""
        tensor = self.edit(leaf, tensor)
        self.record(leaf, tensor)
        return tensor

    def edit(self, leaf: str, tensor: Tensor) -> Tensor:
        """Return a tensor edited where the caller asked for an edit, without recording it: for a step of a loop."""
        name = self._scope + leaf
        if self._edit_patterns and matches(name, self._edit_patterns):
            tensor = self._edited(name, tensor)
        if self.differentiates and tensor.is_floating_point() and matches(name, self._sites):
            # A node of its own, so that a tensor recorded under two names has the gradient of each use.
            return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().clone().requires_grad_()
        return tensor

    def record(self, leaf: str, *steps: Tensor, axis: int = 0) -> None:
        """Record a tensor under its site, unedited, or the steps of a loop put together along an axis."""
        name = self._scope + leaf
        if not matches(name, self._sites):
            return
        self._record(name, steps[0] if len(steps) == 1 else torch.cat(steps, axis))
        if self.differentiates and steps[0].is_floating_point():
            self._used[name] = steps, axis

    def gradients(self, loss: Tensor) -> Trace:
        """Return the gradient of a loss with respect to each recorded tensor, 0 where the loss does not depend on it.

        Nothing is added to any parameter's own gradient. Ids, which are whole numbers, have none.

        Shapes:
            loss: ()

        Raises:
            ValueError: the loss is no single number, or depends on nothing that was recorded.
        """
        if loss.numel() != 1:
            raise ValueError(f"backward returned shape {tuple(loss.shape)}; it must return one number")
        used = [step for steps, _ in self._used.values() for step in steps]
        if not used or not loss.requires_grad:
            raise ValueError(f"backward returned a loss that depends on no tensor of sites={self._sites}")
        slopes = iter(torch.autograd.grad(loss.sum(), used, allow_unused=True, materialize_grads=True))
        found = {name: [next(slopes) for _ in steps] for name, (steps, _) in self._used.items()}
        axes = {name: axis for name, (_, axis) in self._used.items()}
        return Trace({name: torch.cat(each, axes[name]) if len(each) > 1 else each[0] for name, each in found.items()})

    def _edited(self, name: str, tensor: Tensor) -> Tensor:
        for pattern, edit in self._edits.items():
            if matches(name, (pattern,)):
                edited = edit(tensor.clone())
                if not isinstance(edited, Tensor):
                    raise ValueError(
                        f"edits[{pattern!r}] returned {type(edited).__name__} at {name}; it must return the tensor"
                    )
                if edited.shape != tensor.shape:
                    raise ValueError(
                        f"edits[{pattern!r}] returned shape {tuple(edited.shape)} at {name}; "
                        f"it must keep {tuple(tensor.shape)}"
                    )
                tensor = edited.to(tensor.dtype)
                self.applied.add(pattern)
        return tensor

    def _record(self, name: str, tensor: Tensor) -> None:
        replaced = self.trace._tensors.get(name)
        times = 2 if self.differentiates and tensor.is_floating_point() else 1
        self._bytes[0] += times * (tensor.nbytes - (0 if replaced is None else replaced.nbytes))
        if self._bytes[0] > self._max_bytes:
            raise TraceTooLarge(
                f"sites={self._sites} keep more than max_bytes={self._max_bytes}: {name} {tuple(tensor.shape)} "
                f"brings them to {self._bytes[0]}; name fewer sites or layers, or give a shorter text"
            )
        # A parameter, a cached table or the caller's ids outlive the pass; no reader of the trace may reach them.
        if not tensor.is_inference():
            copied = torch.is_inference_mode_enabled() or self.differentiates
            tensor = tensor.detach().clone() if copied else tensor.detach()
        self.trace._tensors[name] = tensor
        if self._until is not None and matches(name, (self._until,)):
            raise _Enough


class Silent(Probe):
    """The probe that records and edits nothing, at almost no cost."""

    def at(self, scope: str) -> Probe:
        """Return itself: nothing is recorded at any scope."""
        return self

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def wants(self, *leaves: str) -> bool:
        """Return False: nothing is wanted."""
        return False

    def tap(self, leaf: str, tensor: Tensor) -> Tensor:
        """Return the tensor unchanged."""
        return tensor

    def edit(self, leaf: str, tensor: Tensor) -> Tensor:
        """Return the tensor unchanged."""
        return tensor

    def record(self, leaf: str, *steps: Tensor, axis: int = 0) -> None:
        """Record nothing."""


SILENT: Probe = Silent(())


class Readable(Protocol):
    """A model that reads texts, such as a bundle."""

    model: nn.Module

    def to_tokens(self, *texts: str, target: bool = False) -> Tensor:
        """Return the ids of texts, (text, pos); target: they are translations."""
        ...


def capture(
    model: nn.Module | Readable,
    *inputs: Any,
    sites: tuple[str, ...] = ("*",),
    edits: Mapping[str, Edit] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    until: str | None = None,
    backward: Callable[[Any], Tensor] | None = None,
    **options: Any,
) -> tuple[Any, Trace]:
    """Run one forward pass and return its output, None where it ended early, with what was recorded.

    Args:
        model: any model of this package, or a bundle; it is neither changed nor put in another mode.
        inputs, options: handed to the model as they are, but for a bundle's texts, of which a second is a translation.
        sites, edits, max_bytes, until: see Probe.
        backward: from the output to a loss, one number, whose gradient with respect to each recorded tensor becomes
            the trace's `gradients`. Without it the pass keeps nothing that a gradient needs.

    Raises:
        ValueError: a pattern in sites or edits matches no tensor of this forward pass, or until none that is recorded,
            or as Probe; an input is neither ids nor, of a bundle, a text; until and backward are both given.
    """
    model, inputs = _read(model, inputs)
    if until is not None and backward is not None:
        raise ValueError(f"until={until!r} must be None with backward: a pass that ends early has no loss")
    probe = Probe(sites, edits=edits, max_bytes=max_bytes, until=until, differentiates=backward is not None)
    output = None
    with torch.inference_mode(backward is None), torch.set_grad_enabled(backward is not None):
        if backward is not None:
            inputs, options = tuple(map(_usable, inputs)), {name: _usable(one) for name, one in options.items()}
        with suppress(_Enough):
            output = model(*inputs, probe=probe, **options)
        _check_patterns(type(model).__name__, probe, sites, until, edits or {})
        if backward is not None:
            probe.trace.gradients = probe.gradients(backward(output))
            output = _detached(output)
    return output, probe.trace


def _usable(given: Any) -> Any:
    """Return a tensor that autograd may keep: one made in inference mode is copied."""
    return given.clone() if isinstance(given, Tensor) and given.is_inference() else given


def _detached(output: Any) -> Any:
    """Return a model's output without the graph that made it."""
    if isinstance(output, Tensor):
        return output.detach()
    return type(output)(*map(_detached, output))


def _check_patterns(
    model: str, probe: Probe, sites: tuple[str, ...], until: str | None, edits: Mapping[str, Edit]
) -> None:
    for pattern in sites:
        if not any(matches(name, (pattern,)) for name in probe.trace):
            raise ValueError(f"sites={pattern!r} matches no tensor of {model}'s forward pass")
    if until is not None and not any(matches(name, (until,)) for name in probe.trace):
        raise ValueError(f"until={until!r} matches no recorded tensor of {model}'s forward pass")
    for pattern in set(edits) - probe.applied:
        raise ValueError(f"edits={pattern!r} matches no tensor of {model}'s forward pass")


def _read(model: nn.Module | Readable, inputs: tuple[Any, ...]) -> tuple[nn.Module, tuple[Any, ...]]:
    """Return the model itself, and its inputs with texts made ids."""
    if not isinstance(model, nn.Module):
        if not hasattr(model, "to_tokens"):
            raise ValueError(f"model is of type {type(model).__name__}; it must be a model or a bundle")
        texts = enumerate(inputs)
        inputs = tuple(model.to_tokens(one, target=place > 0) if isinstance(one, str) else one for place, one in texts)
        model = model.model
    for place, one in enumerate(inputs):
        if isinstance(one, str | list | tuple):
            raise ValueError(
                f"inputs[{place}] is of type {type(one).__name__}; it must be a tensor of ids (batch, pos), "
                "or a text where a bundle is given in the model's place"
            )
    return model, inputs
