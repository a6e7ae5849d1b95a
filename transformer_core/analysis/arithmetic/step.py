"""One step of a forward pass in float64: a whole tensor from its inputs, and any cell of it with its numbers.

Read next: flow.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from transformer_core.analysis.arithmetic.writing import number, put_in, written_sum

Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Sum:
    """Many terms for every cell: products left * right, or the numbers left alone.

    Shapes:
        left, right: broadcastable to (*shape of the tensor, term)
        whole: the sums of all cells, broadcastable to the shape of the tensor
    """

    left: Tensor
    right: Tensor | None
    whole: Tensor

    def at(self, index: Index, shape: Index) -> tuple[Tensor, Tensor | None]:
        """Return the terms of one cell: (term,) each."""
        left, right = (
            None if side is None else side.broadcast_to(*shape, side.shape[-1])[index]
            for side in (self.left, self.right)
        )
        assert left is not None
        return left, right


def matrix_product(a: Tensor, b: Tensor) -> Sum:
    """Return the terms of a @ b.

    Shapes:
        a: (..., row, term); b: (..., term, col)
    """
    return Sum(a.unsqueeze(-2), b.mT.unsqueeze(-3), a @ b)


def added_up(x: Tensor) -> Sum:
    """Return the terms of a sum over the last axis, for every cell of (..., one).

    Shapes:
        x: (..., term)
    """
    return Sum(x.unsqueeze(-2), None, x.sum(-1, keepdim=True))


@dataclass(frozen=True)
class Cell:
    """One cell's arithmetic.

    Args:
        symbols: the right side of its formula with its indices, in LaTeX.
        numbers: the same with its numbers put in.
        value: what those numbers make, in float64.
    """

    symbols: str
    numbers: str
    value: float


@dataclass(frozen=True, eq=False)
class Step:
    """How a tensor is computed: one function of numbers that stand at a cell, and of sums over many.

    Args:
        symbols, numbers: the formula in LaTeX, with places for the indices <h>, <i> and <j> of head, row and column,
            and for values and sums by their names.
        function: from values and sums, by name, to the tensor; it works on whole tensors and on one cell alike.
        values, sums: by name; every value is broadcastable to the tensor.
        sources: which recorded tensors went in, by the letter that the formula gives them.
        where: where False, `otherwise` is written in place of symbols and numbers; broadcastable to the tensor.
    """

    symbols: str
    numbers: str
    function: Callable[..., Tensor]
    values: Mapping[str, Tensor] = field(default_factory=dict)
    sums: Mapping[str, Sum] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    where: Tensor | None = None
    otherwise: tuple[str, str] = ("", "")

    def whole(self, shape: Index) -> Tensor:
        """Recompute the tensor."""
        sums = {name: total.whole for name, total in self.sums.items()}
        return self.function(**self.values, **sums).broadcast_to(shape)

    def cell(self, index: Index, shape: Index) -> Cell:
        """Recompute one cell and write its arithmetic."""
        values = {name: value.broadcast_to(shape)[index] for name, value in self.values.items()}
        terms = {name: total.at(index, shape) for name, total in self.sums.items()}
        added = {name: (left if right is None else left * right).sum() for name, (left, right) in terms.items()}
        usual = self.where is None or bool(self.where.broadcast_to(shape)[index])
        words = {name: number(float(value)) for name, value in values.items()}
        words |= {name: written_sum(*sides) for name, sides in terms.items()}
        places = dict(zip("jih", map(str, reversed(index)), strict=False))
        symbols, numbers = (
            put_in(template, words | places) for template in ((self.symbols, self.numbers) if usual else self.otherwise)
        )
        return Cell(symbols, numbers, float(self.function(**values, **added)))
