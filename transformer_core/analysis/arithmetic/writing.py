r"""Numbers put into a formula: LaTeX in which ``<x>`` is a place for a number.

Read next: step.py.
"""

import math
import re
from collections.abc import Mapping

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
    """Write a sum of products (of numbers where right is None): the largest terms, then what all others make.

    Below the brace of the others stands how many they are.

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


def entry(letter: str, index: tuple[int, ...]) -> str:
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
    both = recorded.double()
    different = (both - recomputed).abs()
    return float(torch.where(both == recomputed, 0.0, different).nan_to_num(nan=math.inf).max())
