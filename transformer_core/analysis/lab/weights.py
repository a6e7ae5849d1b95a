"""Changed weights: a copy of a model in which some matrices are other ones; the model itself is never touched.

Pruning by size: Han et al. 2015, section 3; rounding to n bits: Jacob et al. 2018, section 2.1, symmetric about zero;
low rank: Eckart and Young 1936.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

Operation = Literal["scale", "zero", "noise", "round", "round_rows", "prune", "rank", "paint", "random"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
EVERY = "*"
MATRIX_KINDS = {EVERY: "", "*attention": "attention", "*feed_forward": "feed_forward", "*embedding": "embedding"}
MOST_BITS = 16
MOST_BLOCKS = 2_000  # of one edit
LARGEST = 1e6  # of a number written, an amount or a strength, so that sums stay finite
Block = tuple[int, int, int, int]  # first row, first column, how many rows, how many columns
Stroke = tuple[float, tuple[Block, ...]]  # the number written, and where


def sharing_copy(model: nn.Module) -> nn.Module:
    """Return a model of its own that shares every parameter and buffer with another one, and all that is no module."""
    made: dict[int, nn.Module] = {}

    def copied(module: nn.Module) -> nn.Module:
        if id(module) not in made:
            other = made[id(module)] = object.__new__(type(module))
            other.__dict__ = {
                name: value.copy() if isinstance(value, dict) else value for name, value in vars(module).items()
            }
            other._modules = {name: one if one is None else copied(one) for name, one in module._modules.items()}
        return made[id(module)]

    return copied(model)


def with_weights(model: nn.Module, changed: Mapping[str, Tensor]) -> nn.Module:
    """Return a model with other tensors under some names, which shares all others; tied parameters stay tied.

    Raises:
        ValueError: there is no such parameter, or it has another shape.
    """
    if not changed:
        return model
    named = dict(model.named_parameters())
    for name, tensor in changed.items():
        _require(named, name)
        if tensor.shape != named[name].shape:
            raise ValueError(f"changed[{name!r}] has shape {tuple(tensor.shape)}, needed {tuple(named[name].shape)}")
    other = sharing_copy(model)
    replaced = {id(named[name]): nn.Parameter(tensor, requires_grad=False) for name, tensor in changed.items()}
    for module in other.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None and id(parameter) in replaced:
                module._parameters[name] = replaced[id(parameter)]
    return other


def require_parameter(model: nn.Module, name: str) -> Tensor:
    """Return a parameter by its name.

    Raises:
        ValueError: there is none.
    """
    return _require(dict(model.named_parameters()), name)


def _require(named: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in named:
        raise ValueError(f"parameter={name!r} must be one of the model's, such as {next(iter(named))!r}")
    return named[name]


def matrices_of(model: nn.Module, kind: str = EVERY) -> tuple[str, ...]:
    """Return the names of all matrices of a model, or of those of a kind of MATRIX_KINDS, in its order."""
    part = MATRIX_KINDS[kind]
    return tuple(name for name, weight in model.named_parameters() if weight.dim() == 2 and part in name)


def matrix_kinds(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Return the matrices of each kind that has more than one and is not all of another kind."""
    names = matrices_of(model)
    found = {kind: tuple(name for name in names if part in name) for kind, part in MATRIX_KINDS.items()}
    return {kind: names for kind, names in found.items() if len(names) > 1 and (kind == EVERY or names != found[EVERY])}


@dataclass(frozen=True)
class WeightEdit:
    """A matrix (or vector) of the model, changed.

    Args:
        parameter: its name.
        operation: "scale" by amount; "zero"; "noise": add normal numbers of amount times the matrix's own standard
            deviation; "round" to `amount` bits with one step for all, "round_rows" with one for each row; "prune": the
            share `amount` of the numbers, those nearest zero, becomes zero; "rank": keep the first `amount` singular
            values; "paint": write numbers over cells; "random": add normal numbers that together have the norm
            `amount`.
        amount: as the operation has it; of no meaning to "zero" and "paint".
        seed: of the numbers drawn.
        strokes: what is painted, a later stroke over an earlier one.
    """

    parameter: str
    operation: Operation
    amount: float = 0.0
    seed: int = 0
    strokes: tuple[Stroke, ...] = ()

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(f"operation={self.operation!r} must be one of {', '.join(OPERATIONS)}")
        if not np.isfinite(self.amount):
            raise ValueError(f"amount={self.amount} must be finite")
        if self.operation in ("round", "round_rows") and not 1 <= self.amount <= MOST_BITS:
            raise ValueError(f"amount={self.amount:g} bits must be from 1 to {MOST_BITS}")
        if self.operation == "prune" and not 0 <= self.amount <= 1:
            raise ValueError(f"amount={self.amount:g} is a share; it must be from 0 to 1")
        if self.operation in ("rank", "noise", "random") and self.amount < 0:
            raise ValueError(f"amount={self.amount:g} must not be negative")
        blocks = sum(len(blocks) for _, blocks in self.strokes)
        if blocks > MOST_BLOCKS:
            raise ValueError(f"strokes has {blocks} blocks of cells; at most {MOST_BLOCKS} are painted in one edit")
        for value, _ in self.strokes:
            if not abs(value) <= LARGEST:
                raise ValueError(f"strokes writes {value}; it must be a number of at most {LARGEST:g}")

    def applied(self, weight: Tensor) -> Tensor:
        """Return the changed weight, of the same shape.

        Raises:
            ValueError: a painted block lies outside, or the weight is not a matrix where one is needed.
        """
        return _APPLY[self.operation](weight.detach().clone(), self)


def edits_of_matrices(
    model: nn.Module, parameter: str, operation: Operation, amount: float, seed: int = 0, largest: int = 0
) -> tuple[WeightEdit, ...]:
    """Return the edit of a matrix, or that of each matrix of a kind.

    Args:
        parameter: the name of a matrix, or a kind of MATRIX_KINDS.
        amount: of "rank", that of the largest matrix; what a smaller one keeps shrinks in proportion.
        largest: the full rank of that one, by default of the largest that is edited.

    Raises:
        ValueError: there is no such matrix, or as WeightEdit.
    """
    names = matrices_of(model, parameter) if parameter in MATRIX_KINDS else (parameter,)
    sides = {name: min(require_parameter(model, name).shape, default=1) for name in names}
    largest = largest or max(sides.values(), default=1)
    kept = {name: max(min(1.0, amount), round(amount * side / largest)) for name, side in sides.items()}
    return tuple(WeightEdit(name, operation, kept[name] if operation == "rank" else amount, seed) for name in names)


def _drawn(weight: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(weight.shape, generator=generator).to(weight)


def _noisy(weight: Tensor, edit: WeightEdit) -> Tensor:
    return weight + edit.amount * weight.std(correction=0) * _drawn(weight, edit.seed)


def _random(weight: Tensor, edit: WeightEdit) -> Tensor:
    drawn = _drawn(weight, edit.seed)
    return weight + edit.amount * drawn / drawn.norm().clamp(min=1e-12)


def _rounded(weight: Tensor, edit: WeightEdit) -> Tensor:
    """Round to integers from -(2^(n-1) - 1) to 2^(n-1) - 1 times a step; one bit keeps the sign of a mean size."""
    by_row = edit.operation == "round_rows" and weight.dim() == 2
    axes: dict = {"dim": 1, "keepdim": True} if by_row else {}
    if edit.amount < 2:
        return weight.sign() * weight.abs().mean(**axes)
    greatest = weight.abs().amax(**axes)
    step = (greatest / (2 ** (int(edit.amount) - 1) - 1)).clamp(min=1e-30)
    return (weight / step).round() * step


def _pruned(weight: Tensor, edit: WeightEdit) -> Tensor:
    count = round(edit.amount * weight.numel())
    if count:
        sizes = weight.abs().flatten().cpu().numpy()
        smallest = np.argpartition(sizes, min(count, sizes.size - 1))[:count]
        weight.view(-1)[torch.from_numpy(smallest).to(weight.device)] = 0.0
    return weight


def _of_rank(weight: Tensor, edit: WeightEdit) -> Tensor:
    if weight.dim() != 2:
        raise ValueError(f"operation='rank' needs a matrix; {edit.parameter!r} has shape {tuple(weight.shape)}")
    left, sizes, right = torch.linalg.svd(weight.cpu().double(), full_matrices=False)
    kept = int(min(edit.amount, len(sizes)))
    return ((left[:, :kept] * sizes[:kept]) @ right[:kept]).to(weight.dtype).to(weight.device)


def _painted(weight: Tensor, edit: WeightEdit) -> Tensor:
    rows, cols = weight.shape if weight.dim() == 2 else (1, weight.numel())
    table = weight.view(rows, cols)
    for value, blocks in edit.strokes:
        for row, col, height, width in blocks:
            if not (0 <= row < row + height <= rows and 0 <= col < col + width <= cols):
                raise ValueError(f"strokes has {(row, col, height, width)}; it must lie within {rows} x {cols}")
            table[row : row + height, col : col + width] = value
    return weight


def blocks_of(cells: np.ndarray) -> tuple[Block, ...]:
    """Return cells as blocks, none over another: runs of a row, joined with equal runs of the rows below.

    Shapes:
        cells: (row, col), boolean
    """
    edges = np.diff(np.pad(cells.astype(np.int8), ((0, 0), (1, 1))))
    found: dict[tuple[int, int, int], int] = {}  # the row after a block, its first column and its width: its height
    for row, line in enumerate(edges):
        for start, end in zip(np.flatnonzero(line > 0).tolist(), np.flatnonzero(line < 0).tolist(), strict=True):
            found[row + 1, start, end - start] = 1 + found.pop((row, start, end - start), 0)
    return tuple((after - height, start, height, width) for (after, start, width), height in found.items())


_APPLY: dict[str, Callable[[Tensor, WeightEdit], Tensor]] = {
    "scale": lambda weight, edit: weight * edit.amount,
    "zero": lambda weight, edit: torch.zeros_like(weight),
    "noise": _noisy,
    "round": _rounded,
    "round_rows": _rounded,
    "prune": _pruned,
    "rank": _of_rank,
    "paint": _painted,
    "random": _random,
}


def damaged(model: nn.Module, edits: tuple[WeightEdit, ...]) -> nn.Module:
    """Return a model with several edits one after the other; a later one finds what an earlier one left."""
    changed: dict[str, Tensor] = {}
    for edit in edits:
        weight = require_parameter(model, edit.parameter)
        changed[edit.parameter] = edit.applied(changed.get(edit.parameter, weight))
    return with_weights(model, changed)


def size_of(before: nn.Module, after: nn.Module) -> dict[str, float]:
    """Return the Frobenius norm of what differs in each parameter of two models, by its name, where anything does."""
    theirs = dict(after.named_parameters())
    changed = {name: weight for name, weight in before.named_parameters() if theirs[name] is not weight}
    return {name: float((theirs[name] - weight).norm()) for name, weight in changed.items()}
