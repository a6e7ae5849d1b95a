"""The arithmetic of the input: ids, rows of matrices, positions in every scheme, and their sum.

Vaswani et al. 2017, sections 3.4 and 3.5; segments: Devlin et al. 2019, figure 2; rotary: Su et al. 2021, eq. 15;
ALiBi: Press et al. 2022, section 3; relative: Raffel et al. 2020, section 2.1.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic.computation import Computation
from transformer_core.analysis.arithmetic.forward_pass import Pass
from transformer_core.layers.embeddings import rows_of


def same(x: Tensor) -> Tensor:
    """Return x unchanged."""
    return x


def passed_on(x: Tensor, letter: str, source: str, index: str = "<i>,<j>") -> Computation:
    """A recorded tensor, or a part of it, as it is.

    Args:
        letter, index: of its entry in the formula.
    """
    return Computation(rf"{letter}_{{{index}}}", "<x>", same, {"x": x}, sources={letter: source}, slopes={letter: "1"})


def total(**parts: Tensor) -> Tensor:
    """Return the sum of all parts."""
    return torch.stack(torch.broadcast_tensors(*parts.values())).sum(0)


def token_ids(run: Pass, scope: str) -> Computation:
    """The ids of the input."""
    ids = run.ids[scope.partition(".")[0]]
    return Computation(r"\mathrm{vocabulary}(w_{<j>})", "<x>", same, {"x": ids})


def segment_ids(run: Pass, scope: str) -> Computation:
    """The segment ids of the input; where there are none, all are 0."""
    ids = run.ids[scope.partition(".")[0]]
    given = torch.zeros_like(ids) if run.segment_ids is None else run.segment_ids
    return Computation(r"\mathrm{sentence}(w_{<j>})", "<x>", same, {"x": given})


def _row(run: Pass, scope: str, letter: str, picks: str, matrix: Tensor) -> Computation:
    ids = rows_of(run[f"{scope}.{picks}"], run.config.pad_id)
    one_hot_product = matrix.cpu().double()[ids]  # (batch, pos, d_model)
    values = {"x": one_hot_product, "id": ids[..., None]}
    pick = picks[0]

    sources = {pick: f"{scope}.{picks}"}
    return Computation(
        rf"{letter}_{{{pick}_{{<i>}},\,<j>}}", rf"{letter}_{{<id>,\,<j>}}", lambda x, id: x, values, sources=sources
    )


def token_embedding(run: Pass, scope: str) -> Computation:
    """A row of the embedding matrix."""
    return _row(run, scope, "E", "token_ids", run.token_matrix(scope))


def one_hot(run: Pass, scope: str) -> Computation:
    """1 where the place is the id's, else 0."""
    source = f"{scope}.token_ids"
    ids = run[source]
    places = torch.arange(run.config.vocab_size, device=ids.device)
    values = {"x": (ids[..., None] == places).double()}
    return Computation(r"[t_{<i>}=<j>]", "<x>", same, values, sources={"t": source})


def segment_embedding(run: Pass, scope: str) -> Computation:
    """A row of the segment matrix."""
    return _row(run, scope, "S", "segment_ids", run.module(f"{scope}.segment").weight)


def scaled_embedding(run: Pass, scope: str) -> Computation:
    """The row times sqrt(d_model)."""
    source = f"{scope}.token_embedding"
    x = run[source]
    d = torch.tensor(float(x.shape[-1]))
    root = r"\sqrt{d_{model}}" if x.shape[-1] == run.config.d_model else r"\sqrt{d_e}"  # factorised
    return Computation(
        rf"{root}\cdot e_{{<i>,<j>}}",
        r"\sqrt{<d>}\cdot<x>",
        lambda x, d: x * torch.sqrt(d.double()),
        {"x": x, "d": d},
        sources={"e": source},
        slopes={"e": root},
    )


def summed(run: Pass, sources: Mapping[str, str]) -> Computation:
    """The sum of recorded tensors, by the letter that the formula gives each."""
    return Computation(
        "+".join(rf"{letter}_{{<i>,<j>}}" for letter in sources),
        "+".join(f"<{letter}>" for letter in sources),
        total,
        {letter: run[source] for letter, source in sources.items()},
        sources=sources,
        slopes=dict.fromkeys(sources, "1"),
    )


def embedding_sum(run: Pass, scope: str) -> Computation:
    """Token, segment and position embeddings, where the model has them."""
    token = "scaled_embedding" if run.config.scale_embeddings else "token_embedding"
    leaves = {"e": token, "s": "segment_embedding", "p": "position_embedding"}
    sources = {letter: f"{scope}.{leaf}" for letter, leaf in leaves.items() if f"{scope}.{leaf}" in run.trace}
    return summed(run, sources)


def position_embedding(run: Pass, scope: str) -> Computation:
    """Sines and cosines of the position, or a learned row."""
    length, d_model = run.trace[f"{scope}.position_embedding"].shape[-2:]
    if run.config.positions == "learned":
        rows = run.module(scope).positions_of(run.ids[scope.partition(".")[0]]).double()
        return Computation(r"P_{<i>,<j>}", r"P_{<i>,<j>}", same, {"x": rows})
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
    return Computation(
        rf"\sin{formula}",
        rf"\sin{angle}",
        wave,
        {"pos": place, "exponent": exponent, "even": even},
        where=even,
        otherwise=(rf"\cos{formula}", rf"\cos{angle}"),
    )


def _rotated(run: Pass, scope: str, role: str) -> Computation:
    source = run.wiring(scope).before_turning(scope, role)
    x, rotary = run[source], run.module(scope).rotary  # (batch, head, pos, d_head)
    length, d_head = x.shape[-2:]
    dims = rotary.dims or d_head
    place = torch.arange(d_head)
    pair = (place % (dims // 2)) if rotary.halves else place // 2
    first = (place < dims // 2) if rotary.halves else place % 2 == 0
    u = pair if rotary.halves else 2 * pair
    w = u + (dims // 2 if rotary.halves else 1)
    u, w = (torch.where(place < dims, side, place) for side in (u, w))
    angles = rotary.angles(d_head)[pair.clamp(max=dims // 2 - 1)]
    theta = torch.arange(length).double()[:, None] * torch.where(place < dims, angles, 0.0)
    grown = torch.where(place < dims, rotary.growth, 1.0).double()

    def turned(a: Tensor, b: Tensor, theta: Tensor, first: Tensor, grown: Tensor, **_: Tensor) -> Tensor:
        return grown * torch.where(first, a * theta.cos() - b * theta.sin(), a * theta.sin() + b * theta.cos())

    letter = role[0]
    a, b = rf"{letter}_{{<i>,<u>}}", rf"{letter}_{{<i>,<w>}}"
    power = "" if rotary.scaling == "none" else r"\,s_{<k>}"
    angle = rf",\quad\theta=<i>\cdot{rotary.base:g}^{{-2\cdot<k>/{dims}}}{power}"
    grows, grown_by, times = ("", "", "") if rotary.growth == 1 else (r"g\,(", r"<grown>\cdot(", r"g\,")
    end = ")" if grows else ""
    first = first | (place >= dims)  # what does not turn is turned by 0
    return Computation(
        rf"{grows}{a}\cos\theta-{b}\sin\theta{end}{angle}",
        rf"{grown_by}<a>\cos<theta>-<b>\sin<theta>{end}",
        turned,
        {"a": x[..., u], "b": x[..., w], "theta": theta, "first": first, "grown": grown, "u": u, "w": w, "k": pair},
        sources={letter: source},
        slopes={letter: rf"{times}\cos\theta\ (j=k),\ -{times}\sin\theta\ (j\lt k),\ {times}\sin\theta\ (j\gt k)"},
        where=first,
        otherwise=(
            rf"{grows}{a}\sin\theta+{b}\cos\theta{end}{angle}",
            rf"{grown_by}<a>\sin<theta>+<b>\cos<theta>{end}",
        ),
    )


def rotated_query(run: Pass, scope: str) -> Computation:
    """Pairs of the query's coordinates, turned by their position's angles."""
    return _rotated(run, scope, "query")


def rotated_key(run: Pass, scope: str) -> Computation:
    """Pairs of the key's coordinates, turned by their position's angles."""
    return _rotated(run, scope, "key")


def position_bias(run: Pass, scope: str) -> Computation:
    """A head's slope times the distance; or the head's number for the kind of distance."""
    if (relative := run.module(scope).relative_bias) is not None:
        bucket = relative.buckets(*run.trace[f"{scope}.position_bias"].shape[1:]).cpu()
        values = {"x": relative.weight.cpu().double()[bucket].permute(2, 0, 1), "bucket": bucket}
        return Computation(r"B_{\beta(<j>-<i>),\,<h>}", r"B_{<bucket>,\,<h>}", lambda x, bucket: x, values)
    heads, queries, keys = run.trace[f"{scope}.position_bias"].shape
    whole = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * (k + 1) / whole) for k in range(whole)]
    slopes += [2.0 ** (-4 * (2 * k + 1) / whole) for k in range(heads - whole)]
    i = torch.arange(queries).double()[:, None] + keys - queries
    values = {"m": torch.tensor(slopes, dtype=torch.float64)[:, None, None], "i": i, "k": torch.arange(keys).double()}
    return Computation(r"-m_{<h>}\,|<i>-<j>|", r"-<m>\cdot|<i>-<k>|", lambda m, i, k: -m * (i - k).abs(), values)
