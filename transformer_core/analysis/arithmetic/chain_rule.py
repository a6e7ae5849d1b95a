"""Where a gradient comes from: the chain rule at one cell, as sums of products over the tensors computed from it.

dL/dx = sum over all cells y that read x of dL/dy * dy/dx (Rumelhart et al. 1986, eqs. 4 to 7). dL/dy was recorded;
dy/dx is the derivative of the same arithmetic that recomputes y (table.py), carried along with it (Wengert 1964).
"""

import re
import threading
import weakref
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.autograd.forward_ad as forward
from torch import Tensor, nn

from transformer_core.analysis.arithmetic.computation import Computation, Index, entry, number, written_sum
from transformer_core.analysis.arithmetic.forward_pass import Pass, read_through
from transformer_core.analysis.arithmetic.table import RULES, axes_of, checked, places_of, step_of, values_of
from transformer_core.analysis.gradients.loss import TextLoss, text_loss
from transformer_core.prompt import Prompt
from transformer_core.trace import Trace

CLOSE = 1e-4  # of the greatest term, that float32 may take a sum of gradients away from what was recorded
ONE_AT_A_TIME = threading.Lock()  # torch has one level of forward derivatives for all threads
_readers: weakref.WeakKeyDictionary[nn.Module, dict[str, tuple[str, ...]]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class HandedBack:
    """What a tensor that was computed from a cell hands back to it.

    Args:
        name: the tensor's full name.
        slope: the formula of its derivative with respect to the cell's tensor, an equation in LaTeX; "" where that is
            of several steps at once, which has numbers alone.
        symbols, numbers: its sum of products in LaTeX; numbers is "0" where nothing of it depends on the cell.
        value: that sum.
        edited: the page replaced this tensor, so that the rule says nothing of what became of it.
    """

    name: str
    slope: str
    symbols: str
    numbers: str
    value: float
    edited: bool


@dataclass(frozen=True)
class GradientArithmetic:
    """Where one cell's gradient comes from.

    Args:
        entry: the derivative of the loss with respect to the cell, in LaTeX.
        parts: what each tensor computed from it hands back; empty at the scores that the loss itself reads.
        symbols, numbers: of the sum of all parts, or of the loss's own derivative, line by line.
        value: what they make.
        recorded: the gradient that the pass recorded.
        agrees: they differ by no more than rounding explains.
    """

    entry: str
    parts: tuple[HandedBack, ...]
    symbols: tuple[str, ...]
    numbers: tuple[str, ...]
    value: float
    recorded: float
    agrees: bool

    @property
    def edited(self) -> tuple[str, ...]:
        """The names of the tensors computed from it that the page replaced."""
        return tuple(part.name for part in self.parts if part.edited)


@dataclass(frozen=True, eq=False)
class _Moved(Pass):
    """A pass of which one tensor carries a direction along, and that notes which tensors were read.

    Args:
        name, direction: of that tensor.
    """

    name: str = ""
    direction: Tensor | None = None
    read: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        found = super().__getitem__(name)
        return forward.make_dual(found.clone(), self.direction) if name == self.name else found


@dataclass(frozen=True, eq=False)
class Differentiated:
    """A recorded tensor and the gradient of a text's loss with respect to it.

    Shapes:
        values, gradients: the same, one axis for each of ``axes``

    Args:
        name: its full name; axes: their names.
        loss: in nats, the mean of n_answers.
    """

    name: str
    axes: tuple[str, ...]
    values: np.ndarray
    gradients: np.ndarray
    loss: float
    n_answers: int


def differentiated(run: Pass, name: str) -> Differentiated:
    """Return a recorded tensor and its gradient, of a pass with a loss.

    Raises:
        ValueError: the pass has no gradients, or the tensor none.
    """
    loss, gradients = _gradients(run, name)
    scores = next(run[one] for one in run.trace if one.rpartition(".")[2] == loss.site)
    first = scores[:1] if scores.dim() == 2 else scores[0]  # (slot, outcome)
    values, axes = values_of(run, name)
    slopes = gradients[name].float().cpu().numpy()
    return Differentiated(name, axes, values, slopes, float(loss.of(first)), len(loss.answers))


def gradient_of(
    *, prompt: Prompt, name: str, target_ids: tuple[int, ...] | None = None, answer: int | None = None
) -> Differentiated:
    """Read a text and return one recorded tensor and its gradient.

    Args:
        name: such as ``encoder.layer0.self_attention.query``.
        target_ids, answer: as in text_loss.

    Raises:
        ValueError: as read_through, text_loss and differentiated.
    """
    loss = text_loss(prompt.bundle, prompt.encoding, target_ids=target_ids, answer=answer)
    return differentiated(read_through(prompt.bundle, prompt.encoding, target_ids=target_ids, loss=loss), name)


def _gradients(run: Pass, name: str) -> tuple[TextLoss, Trace]:
    if run.loss is None or run.trace.gradients is None or name not in run.trace.gradients:
        raise ValueError(f"name={name!r} has no gradient; it must be a recorded tensor of a pass with a loss, not ids")
    return run.loss, run.trace.gradients


def differentiable(run: Pass, name: str) -> bool:
    """Return whether a recorded tensor has a gradient: ids, which are whole numbers, have none."""
    return run.trace.gradients is not None and name in run.trace.gradients


def explain_gradient(run: Pass, name: str, index: Index) -> GradientArithmetic:
    """Write where one cell's gradient comes from.

    Args:
        run: a pass with a loss.
        index: one number an axis of the recorded tensor.

    Raises:
        ValueError: the pass has no gradients, or the tensor none, or the index lies outside.
    """
    loss, gradients = _gradients(run, name)
    checked(run, name, index)
    recorded = float(gradients[name][index])
    letter = RULES[name.rpartition(".")[2]].letter
    below = entry(letter, places_of(run, name, index))
    if name.rpartition(".")[2] == loss.site:
        symbols, numbers, value = _of_loss(run, name, index)
        return _whole(below, (), (symbols,), (numbers,), value, recorded, abs(value))
    parts, sizes = [], [0.0]
    for reader in _readers_of(run, name):
        part, size = _handed_back(run, name, index, reader, below)
        parts.append(part)
        sizes.append(size)
    lines = tuple(part.symbols for part in parts) or ("0",)
    numbers = tuple(part.numbers for part in parts) or ("0",)
    value = sum(part.value for part in parts)
    return _whole(below, tuple(parts), lines, numbers, value, recorded, max(sizes))


def _whole(
    below: str,
    parts: tuple[HandedBack, ...],
    symbols: tuple[str, ...],
    numbers: tuple[str, ...],
    value: float,
    recorded: float,
    size: float,
) -> GradientArithmetic:
    agrees = abs(value - recorded) <= CLOSE * max(size, 1e-3)
    return GradientArithmetic(_over("L", below), parts, symbols, numbers, value, recorded, agrees)


def _over(above: str, below: str) -> str:
    return rf"\frac{{\partial {above}}}{{\partial {below}}}"


def _of_loss(run: Pass, name: str, index: Index) -> tuple[str, str, float]:
    """Return the derivative of the mean cross entropy: softmax minus one-hot, over the number of answers."""
    assert run.loss is not None
    axes = axes_of(run, name)
    slot = index[axes.index("pos")] if "pos" in axes else 0
    if slot not in run.loss.slots or index[0]:
        return r"0\quad(\text{no answer is read here})", "0", 0.0
    scores, n = run[name][index[:-1]], len(run.loss.slots)  # (outcome,)
    share = float(scores.softmax(-1)[index[-1]])
    hot = int(run.loss.answers[run.loss.slots.index(slot)] == index[-1])
    place = f"{slot}," if "pos" in axes else ""
    symbols = rf"\frac1n\left(p_{{{place}{index[-1]}}}-[{index[-1]}=w]\right),\quad p=\mathrm{{softmax}}"
    return symbols, rf"\frac{{{number(share)}-{hot}}}{{{n}}}", (share - hot) / n


def _handed_back(run: Pass, name: str, index: Index, reader: str, below: str) -> tuple[HandedBack, float]:
    """Return what one reader of a tensor hands back to a cell, and the greatest magnitude of a term."""
    assert run.trace.gradients is not None
    slopes, source, formula = _derivative(run, name, index, reader)
    gradient = run.trace.gradients[reader].cpu().double()  # the shape of the reader
    letter = RULES[reader.rpartition(".")[2]].letter
    if letter == RULES[name.rpartition(".")[2]].letter and reader != name:
        letter = rf"\hat{{{letter}}}"  # the stream before and after have one letter
    places = slopes.nonzero()  # (term, dimension)
    slope = f"{_over(letter, source)}={formula}" if formula else ""
    if not len(places):
        return HandedBack(reader, slope, "0", "0", 0.0, run.is_edited(reader)), 0.0
    left, right = gradient[tuple(places.T)], slopes[tuple(places.T)]  # (term,)
    above, counted = _varying(run, reader, letter, places)
    total = rf"\sum_{{{','.join(counted)}}}" if counted else ""
    symbols = rf"{total}{_over('L', above)}\cdot{_over(above, below)}"
    terms = left * right
    made = HandedBack(reader, slope, symbols, written_sum(left, right), float(terms.sum()), run.is_edited(reader))
    return made, float(terms.abs().max())


def _varying(run: Pass, reader: str, letter: str, places: Tensor) -> tuple[str, list[str]]:
    """Return an entry of a tensor with a number where all places agree, else a letter; and these letters."""
    kept = [at for at, axis in enumerate(axes_of(run, reader)) if axis not in ("batch", "one")]
    names = "hij"[-len(kept) :] if kept else ""
    shown = [
        str(int(places[0, at])) if bool((places[:, at] == places[0, at]).all()) else free
        for at, free in zip(kept, names, strict=True)
    ]
    return entry(letter, tuple(shown)), [one for one in shown if one in names]


def _derivative(run: Pass, name: str, index: Index, reader: str) -> tuple[Tensor, str, str]:
    """Return the derivative of a tensor with respect to one cell, its source's letter, and the declared formula.

    Shapes:
        returns: that of the reader
    """
    with ONE_AT_A_TIME, torch.inference_mode(False), torch.no_grad(), forward.dual_level():
        step, moved = _step_along(run, name, index, reader)
        tangent = forward.unpack_dual(step.whole(tuple(run.trace[reader].shape))).tangent
        slopes = torch.zeros(run.trace[reader].shape).double() if tangent is None else tangent.clone()
    source = next((letter for letter, one in step.sources.items() if one == moved.name), "")
    return slopes, source, step.slopes.get(source, "")


def _step_along(run: Pass, name: str, index: Index, reader: str) -> tuple[Computation, _Moved]:
    direction = torch.zeros(run.trace[name].shape, dtype=torch.float64)
    direction[index] = 1.0
    moved = _Moved(run.model, run.ids, run.trace, run.segment_ids, run.edited, run.loss, name, direction)
    return step_of(moved, reader), moved


def _readers_of(run: Pass, name: str) -> tuple[str, ...]:
    """Return the tensors that are computed from a tensor, in the order of the pass; looked up once a model."""
    assert run.trace.gradients is not None
    known = _readers.setdefault(run.model, {})
    if name not in known:
        index = (0,) * run.trace[name].dim()
        found = []
        for reader in run.trace.gradients:
            if not _may_read(run, name, reader):
                continue
            with ONE_AT_A_TIME, torch.inference_mode(False), torch.no_grad(), forward.dual_level():
                if name in _step_along(run, name, index, reader)[1].read:
                    found.append(reader)
        known[name] = tuple(found)
    return known[name]


def _may_read(run: Pass, name: str, reader: str) -> bool:
    """Return whether a tensor may be computed from another as far as their layers tell: most of a model is spared."""
    here, there = (re.match(r"(\w+)\.layer(\d+)\.", one) for one in (name, reader))
    if name == "memory" or name.endswith(".memory"):
        return "cross_attention" in reader
    if here and there:
        return here[1] == there[1] and 0 <= int(there[2]) - int(here[2]) <= 1
    if there:
        return int(there[2]) == 0
    return here is None or int(here[2]) == run.config.n_layers - 1
