"""A tensor of a forward pass in float64, computed again from its inputs, and any cell of it as LaTeX with its numbers.

In a template of LaTeX, ``<x>`` is a place for the number or sum named x.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

MOST_WRITTEN = 3
PLACE = re.compile(r"<(\w+)>")
OPENS = ("(", "{", "=", ",")


def number(value: float) -> str:
    """Write a number in LaTeX, with four digits unless it is whole."""
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.4g}"
    mantissa, _, exponent = f"{value:.3e}".partition("e")
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1.000" else rf"{mantissa}\times{power}"


def put_in(template: str, words: Mapping[str, str]) -> str:
    """Fill the places of a template; what starts with a minus sign gets brackets, or takes the place of a plus."""

    def word(place: re.Match[str]) -> str:
        before = template[: place.start()].rstrip()
        bare = before == "" or before.endswith(OPENS)
        filled = words[place[1]]
        return f"({filled})" if filled.startswith("-") and not bare else filled

    return re.sub(r"\+\(-([^()]*)\)", r"-\1", PLACE.sub(word, template))


def written_sum(left: Tensor, right: Tensor | None) -> str:
    """Write a sum of products (of numbers where right is None): the largest terms, then the sum of all others.

    The number of the others is written below their brace.

    Shapes:
        left, right: (term,)
    """
    terms = left if right is None else left * right
    chosen = terms.abs().topk(min(MOST_WRITTEN, len(terms))).indices.sort().values.tolist()
    parts = [number(float(left[place])) for place in chosen]
    if right is not None:
        parts = [
            put_in(r"<a>\cdot<b>", {"a": part, "b": number(float(right[place]))})
            for part, place in zip(parts, chosen, strict=True)
        ]
    if others := len(terms) - len(chosen):
        rest = number(float(terms.sum() - terms[chosen].sum()))
        sign = "-" if rest.startswith("-") else ""
        parts.append(rf"{sign}\underbrace{{{rest.removeprefix('-')}}}_{{\Sigma\,{others}}}")
    return "+".join(parts).replace("+-", "-")


def entry(letter: str, index: tuple[object, ...]) -> str:
    """Write an entry of a vector, of a matrix, or of a head's matrix, whose head stands above in brackets."""
    above = f"^{{({index[0]})}}" if len(index) == 3 else ""
    return f"{letter}{above}_{{{','.join(map(str, index[-2:]))}}}"


def greatest(tensor: Tensor) -> float:
    """Return the greatest finite magnitude; 0 where there is none."""
    finite = tensor[tensor.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def apart(recorded: Tensor, recomputed: Tensor) -> float:
    """Return the greatest difference of two tensors; equal infinities are not apart.

    Shapes:
        recorded, recomputed: the same
    """
    both = recorded.cpu().double()
    different = (both - recomputed).abs()
    return float(torch.where(both == recomputed, 0.0, different).nan_to_num(nan=math.inf, posinf=math.inf).max())


Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Sum:
    """Many terms for every cell: products left * right, or the numbers in `left` by themselves.

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
        numbers: the same with its numbers filled in.
        value: their result, in float64.
    """

    symbols: str
    numbers: str
    value: float


@dataclass(frozen=True, eq=False)
class Computation:
    """How a tensor is computed: one function of numbers that stand at a cell, and of sums over many.

    Args:
        symbols, numbers: the formula in LaTeX, with places for the indices <h>, <i> and <j> of head, row and column,
            and for values and sums by their names.
        function: from values and sums, by name, to the tensor; it works on whole tensors and on one cell alike.
        values, sums: by name; every value is broadcastable to the tensor.
        sources: which recorded tensors went in, by the letter that the formula gives them.
        slopes: by the same letters, the formula of the tensor's derivative with respect to each in LaTeX, for the chain
            rule; its numbers come from `function` itself.
        where: where False, `otherwise` is written in place of symbols and numbers; broadcastable to the tensor.
    """

    symbols: str
    numbers: str
    function: Callable[..., Tensor]
    values: Mapping[str, Tensor] = field(default_factory=dict)
    sums: Mapping[str, Sum] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    slopes: Mapping[str, str] = field(default_factory=dict)
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
