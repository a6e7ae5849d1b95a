"""The arithmetic of positions: waves or rows that are added, angles that turn, penalties of distance.

Vaswani et al. 2017, section 3.5; Su et al. 2021, eq. 15; Press et al. 2022, section 3. Read next: attending.py.
"""

import math

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic.beginning import same
from transformer_core.analysis.arithmetic.flow import Pass
from transformer_core.analysis.arithmetic.step import Step


def position_embedding(run: Pass, scope: str) -> Step:
    """Sines and cosines of the position, or a learned row."""
    length, d_model = run.trace[f"{scope}.position_embedding"].shape
    if run.config.positions == "learned":
        rows = run.module(f"{scope}.position").weight.double()[:length]
        return Step(r"P_{<i>,<j>}", r"P_{<i>,<j>}", same, {"x": rows})
    place = torch.arange(length, dtype=torch.float64)[:, None]  # (pos, 1)
    column = torch.arange(d_model)
    if run.config.sinusoidal_halves:
        column = torch.cat((column[0::2], column[1::2]))
    even = column % 2 == 0
    doubled = run.config.positions == "sinusoidal_doubled"
    exponent = (2 * column if doubled else column - column % 2).double()  # (d_model,)

    def wave(pos: Tensor, exponent: Tensor, even: Tensor) -> Tensor:
        angle = pos * torch.exp(-exponent / d_model * math.log(10_000.0))
        return torch.where(even, angle.sin(), angle.cos())

    power = r"4k/d_{model}" if doubled else r"2k/d_{model}"
    formula = rf"\left(pos/10000^{{{power}}}\right)"
    angle = rf"\left(<pos>/10000^{{<exponent>/{d_model}}}\right)"
    return Step(
        rf"\sin{formula}",
        rf"\sin{angle}",
        wave,
        {"pos": place, "exponent": exponent, "even": even},
        where=even,
        otherwise=(rf"\cos{formula}", rf"\cos{angle}"),
    )


def _rotated(run: Pass, scope: str, role: str) -> Step:
    source = f"{scope}.{role}"
    x = run[source]  # (batch, head, pos, d_head)
    length, d_head = x.shape[-2:]
    pair = torch.arange(d_head) // 2
    first = torch.arange(d_head) % 2 == 0
    theta = torch.arange(length).double()[:, None] * torch.exp(-2 * pair / d_head * math.log(10_000.0))

    def turned(a: Tensor, b: Tensor, theta: Tensor, first: Tensor, **_: Tensor) -> Tensor:
        return torch.where(first, a * theta.cos() - b * theta.sin(), a * theta.sin() + b * theta.cos())

    letter = role[0]
    a, b = rf"{letter}_{{<i>,<u>}}", rf"{letter}_{{<i>,<w>}}"
    angle = rf",\quad\theta=<i>\cdot10000^{{-<u>/{d_head}}}"
    return Step(
        rf"{a}\cos\theta-{b}\sin\theta{angle}",
        r"<a>\cos<theta>-<b>\sin<theta>",
        turned,
        {
            "a": x[..., 2 * pair],
            "b": x[..., 2 * pair + 1],
            "theta": theta,
            "first": first,
            "u": 2 * pair,
            "w": 2 * pair + 1,
        },
        sources={letter: source},
        where=first,
        otherwise=(rf"{a}\sin\theta+{b}\cos\theta{angle}", r"<a>\sin<theta>+<b>\cos<theta>"),
    )


def rotated_query(run: Pass, scope: str) -> Step:
    """Pairs of the query's coordinates, turned by their position's angles."""
    return _rotated(run, scope, "query")


def rotated_key(run: Pass, scope: str) -> Step:
    """Pairs of the key's coordinates, turned by their position's angles."""
    return _rotated(run, scope, "key")


def position_bias(run: Pass, scope: str) -> Step:
    """A head's slope times the distance."""
    heads, queries, keys = run.trace[f"{scope}.position_bias"].shape
    whole = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * (k + 1) / whole) for k in range(whole)]
    slopes += [2.0 ** (-4 * (2 * k + 1) / whole) for k in range(heads - whole)]
    i = torch.arange(queries).double()[:, None] + keys - queries
    values = {"m": torch.tensor(slopes, dtype=torch.float64)[:, None, None], "i": i, "k": torch.arange(keys).double()}
    return Step(r"-m_{<h>}\,|<i>-<j>|", r"-<m>\cdot|<i>-<k>|", lambda m, i, k: -m * (i - k).abs(), values)
