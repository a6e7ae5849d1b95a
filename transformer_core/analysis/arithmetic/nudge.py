"""A gradient put to the test: one number of a forward pass is moved a little, and the loss is measured again.

The change of the loss is gradient * step + O(step^2), by the definition of the derivative.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic import explain_gradient, read_through
from transformer_core.analysis.gradients.loss import text_loss
from transformer_core.probe import Edit, capture
from transformer_core.prompt import Prompt

LOST = 32  # roundings of the loss in float32: a smaller change is not told from rounding
STRAIGHT = 0.05  # of the expected change, that the measured one may be away from it
Fit = Literal["none", "lost", "straight", "curved"]


@dataclass(frozen=True)
class Nudge:
    """What became of the loss as one number was moved.

    Args:
        step: what was added to the number.
        gradient: of the loss with respect to it.
        before, after: the loss in nats, as the model computes it in its own precision.
    """

    step: float
    gradient: float
    before: float
    after: float

    @property
    def change(self) -> float:
        """How much the loss changed, in nats."""
        return self.after - self.before

    @property
    def expected(self) -> float:
        """What the gradient alone says of that: gradient times step."""
        return self.gradient * self.step

    @property
    def fit(self) -> Fit:
        """Whether the loss followed the straight line that the gradient is the slope of.

        "none": neither moved; "lost": the expected change is below what rounding of the loss hides; "straight": the
        change is within 5 % of it; "curved": it is not, as the loss is no straight line over such a step.
        """
        hidden = LOST * torch.finfo(torch.float32).eps * max(1.0, abs(self.before))
        if max(abs(self.change), abs(self.expected)) == 0:
            return "none"
        if max(abs(self.expected), abs(self.change)) < hidden:
            return "lost"
        return "straight" if abs(self.change - self.expected) <= STRAIGHT * abs(self.expected) else "curved"


def nudge(
    *,
    prompt: Prompt,
    name: str,
    index: tuple[int, ...],
    step: float,
    target_ids: tuple[int, ...] | None = None,
    answer: int | None = None,
    edits: Mapping[str, Edit] | None = None,
) -> Nudge:
    """Move one number of a forward pass and measure the loss again.

    Args:
        name, index: of the recorded tensor, and of the number in it.
        step: what is added to it.
        target_ids, answer: as in text_loss.
        edits: of both passes, as in capture; the step is added to what they leave.

    Raises:
        ValueError: as read_through, text_loss and explain_gradient.
    """
    bundle, edits = prompt.bundle, dict(edits or {})
    loss = text_loss(bundle, prompt.encoding, target_ids=target_ids, answer=answer)
    run = read_through(bundle, prompt.encoding, target_ids=target_ids, edits=edits, loss=loss)
    gradient = explain_gradient(run, name, index).recorded
    shape = tuple(run.trace[name].shape)
    device = bundle.device
    ids = tuple(one.to(device) for one in run.ids.values())
    options: dict[str, Any] = {} if run.segment_ids is None else {"segment_ids": run.segment_ids}

    def measured(by: float) -> float:
        moved = _after(edits.get(name), moved_cell(index, shape, by, from_end=".backward." in name))
        output, _ = capture(bundle.model, *ids, sites=(name,), edits=edits | {name: moved}, **options)
        return float(loss(output))

    return Nudge(step, gradient, measured(0.0), measured(step))


def _after(first: Edit | None, then: Edit) -> Edit:
    return then if first is None else lambda tensor: then(first(tensor))


def moved_cell(index: tuple[int, ...], shape: tuple[int, ...], by: float, *, from_end: bool = False) -> Edit:
    """Return an edit that adds to one number of a tensor, for one pass.

    Args:
        index, shape: of the tensor as it is recorded; in a loop over positions the edit is called once for each, with a
            tensor of one position.
        from_end: that loop begins at the last position.
    """
    calls = 0

    def add(tensor: Tensor) -> Tensor:
        nonlocal calls
        place = list(index)
        if tuple(tensor.shape) != shape:
            axis = next(axis for axis, size in enumerate(shape) if tensor.shape[axis] != size)
            position, calls = (shape[axis] - 1 - calls if from_end else calls), calls + 1
            if position != index[axis]:
                return tensor
            place[axis] = 0
        tensor[tuple(place)] += by
        return tensor

    return add
