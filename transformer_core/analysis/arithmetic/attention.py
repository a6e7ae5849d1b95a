"""The arithmetic of attention: projections, scores, masks, softmax and mixture.

Vaswani et al. 2017, section 3.2; additive scores: Bahdanau et al. 2015, appendix A.1.2.
"""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import Linear

from transformer_core.analysis.arithmetic.computation import Computation, Sum, added_up, matrix_product
from transformer_core.analysis.arithmetic.embeddings import passed_on, same
from transformer_core.analysis.arithmetic.forward_pass import Pass
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.masks import HIDDEN


def _projected(run: Pass, scope: str, role: str) -> Computation:
    attention: MultiHeadAttention = run.module(scope)
    cross = scope.endswith("cross_attention") and role != "query"
    source = "memory" if cross else run.wiring(scope).into(scope)
    letter = role[0].upper()
    heads = attention.n_heads if role == "query" else attention.n_kv_heads
    x, d_head = run[source], attention.d_head  # (batch, pos, d_model)
    proj = _projection(attention, role)
    if proj is None:
        split = x.unflatten(-1, (heads, d_head)).transpose(1, 2)  # (batch, head, pos, d_head)
        symbols = rf"x_{{<i>,\,<h>\cdot{d_head}+<j>}}"
        return Computation(symbols, "<x>", same, {"x": split}, sources={"x": source}, slopes={"x": "1"})
    weight = proj.weight.cpu().double().unflatten(0, (heads, d_head))  # (head, d_head, d_model)
    product = matrix_product(x[:, None], weight.mT)  # (batch, head, pos, d_head)
    symbols, numbers, values = rf"x_{{<i>}}\cdot W^{{{letter}(<h>)}}_{{:,<j>}}", "<dot>", {}
    if proj.bias is not None:
        values["b"] = proj.bias.cpu().double().unflatten(0, (heads, 1, d_head))
        symbols, numbers = rf"{symbols}+b^{{{letter}(<h>)}}_{{<j>}}", "<dot>+<b>"
    slopes = {"x": rf"W^{{{letter}(h)}}_{{k,j}}"}
    return Computation(symbols, numbers, plus, values, {"dot": product}, {"x": source}, slopes)


def _projection(attention: MultiHeadAttention, role: str) -> Linear | None:
    key_proj = attention.query_proj if attention.key_proj is None else attention.key_proj
    value_proj = key_proj if attention.value_proj is None else attention.value_proj
    return {"query": attention.query_proj, "key": key_proj, "value": value_proj}[role]


def plus(dot: Tensor, b: Tensor | float = 0.0) -> Tensor:
    """Add a bias, where there is one."""
    return dot + b


def linear(x: Tensor, proj: Linear, names: tuple[str, str, str], sources: Mapping[str, str]) -> Computation:
    """x W + b with its terms.

    Shapes:
        x: (..., row, inside)

    Args:
        names: of a row of x, of the matrix and of the bias in the formula.
    """
    row, matrix, bias = names
    values = {} if proj.bias is None else {"b": proj.bias.cpu().double()}
    symbols = rf"{row}\cdot {matrix}_{{:,<j>}}" + (rf"+{bias}_{{<j>}}" if values else "")
    dot = matrix_product(x, proj.weight.cpu().double().mT)
    slopes = dict.fromkeys(sources, rf"{matrix}_{{k,j}}")
    return Computation(symbols, "<dot>+<b>" if values else "<dot>", plus, values, {"dot": dot}, sources, slopes)


def query(run: Pass, scope: str) -> Computation:
    """x W^Q + b^Q."""
    return _projected(run, scope, "query")


def key(run: Pass, scope: str) -> Computation:
    """x W^K + b^K."""
    return _projected(run, scope, "key")


def value(run: Pass, scope: str) -> Computation:
    """x W^V + b^V."""
    return _projected(run, scope, "value")


def _normalized(run: Pass, scope: str, role: str) -> Computation:
    """A query or key over its root mean square, of its head or of all heads at once."""
    attention, source = run.module(scope), f"{scope}.{role}"
    norm = run.module(f"{scope}.{role}_norm")
    x, d_head = run[source], attention.d_head  # (batch, head, pos, d_head)
    whole = len(norm.weight) != d_head
    gain = norm.weight.cpu().double()
    g = gain.unflatten(0, (-1, 1, d_head)) if whole else gain  # (head, 1, d_head) or (d_head,)
    counted = x.transpose(1, 2).flatten(2)[:, None] if whole else x  # (batch, 1, pos, head * d_head)
    values = {"g": g, "x": x, "n": torch.tensor(float(len(gain))), "eps": torch.tensor(norm.eps).double()}
    letter = role[0]

    def divided(g: Tensor, x: Tensor, n: Tensor, eps: Tensor, sum: Tensor) -> Tensor:
        return g * x / (sum / n + eps).sqrt()

    over = r"\sum_{h,k}" if whole else r"\sum_k"
    return Computation(
        rf"g_{{<j>}}\cdot\frac{{{letter}_{{<i>,<j>}}}}{{\sqrt{{\tfrac1n{over}{letter}_{{<i>,k}}^2+\epsilon}}}}",
        r"<g>\cdot\frac{<x>}{\sqrt{\frac{<sum>}{<n>}+<eps>}}",
        divided,
        values,
        {"sum": added_up(counted.square())},
        {letter: source},
        {letter: rf"\frac{{g_j}}{{r_i}}\left([j=k]-\frac{{{letter}_{{i,j}}{letter}_{{i,k}}}}{{n\,r_i^2}}\right)"},
    )


def normalized_query(run: Pass, scope: str) -> Computation:
    """The query over its root mean square."""
    return _normalized(run, scope, "query")


def normalized_key(run: Pass, scope: str) -> Computation:
    """The key over its root mean square."""
    return _normalized(run, scope, "key")


def _for_each_head(attention: MultiHeadAttention, kept: Tensor) -> Tensor:
    """Repeat keys or values (batch, kv_head, key_pos, d_head) for each head that reads them."""
    return kept.repeat_interleave(attention.n_heads // attention.n_kv_heads, dim=1)


def scores(run: Pass, scope: str) -> Computation:
    """What was scored, capped where the model caps it."""
    cap, source = run.module(scope).score_cap, f"{scope}.uncapped_scores"
    if cap is None:
        return uncapped_scores(run, scope)
    found = {"s": run[source], "cap": torch.tensor(cap).double()}
    sources, symbols, numbers = {"s": source}, r"c\tanh(s_{<i>,<j>}/c)", r"<cap>\cdot\tanh(\frac{<s>}{<cap>})"
    if (bias := f"{scope}.position_bias") in run.trace:
        sources["b"], found["b"] = bias, run[bias]
        symbols, numbers = symbols + "+b_{<i>,<j>}", numbers + "+<b>"

    def capped(s: Tensor, cap: Tensor, b: Tensor | float = 0.0) -> Tensor:
        return cap * torch.tanh(s / cap) + b

    slopes = {"s": r"1-\tanh^2(s_{i,j}/c)", "b": "1"}
    return Computation(symbols, numbers, capped, found, sources=sources, slopes=slopes)


def uncapped_scores(run: Pass, scope: str) -> Computation:
    """The dot product over sqrt(d_head), or v . tanh(q + k); with what distance adds where nothing is capped."""
    attention: MultiHeadAttention = run.module(scope)
    wiring = run.wiring(scope)
    sources = {"q": wiring.scored(scope, "query"), "k": wiring.scored(scope, "key")}
    q, k = (run[name] for name in sources.values())  # (batch, head, query_pos, d_head), (batch, kv_head, ...)
    k = _for_each_head(attention, k)  # (batch, head, key_pos, d_head)
    values, divided = {}, attention.scale and attention.additive_scores is None
    if attention.additive_scores is not None:
        features = torch.tanh(q[:, :, :, None] + k[:, :, None])  # (batch, head, query_pos, key_pos, d_head)
        v = attention.additive_scores.weight.cpu().double()[:, None, None]  # (head, 1, 1, d_head)
        dot = Sum(v, features, (v * features).sum(-1))
        symbols, numbers = r"v^{(<h>)}\cdot\tanh(q_{<i>}+k_{<j>})", "<dot>"
        slopes = dict.fromkeys("qk", r"v^{(h)}_l\left(1-\tanh^2(q_{i,l}+k_{j,l})\right)")
    else:
        dot = matrix_product(q, k.mT)
        symbols = r"\frac{q_{<i>}\cdot k_{<j>}}{\sqrt{d_k}}" if divided else r"q_{<i>}\cdot k_{<j>}"
        numbers = r"\frac{<dot>}{\sqrt{<d>}}" if divided else "<dot>"
        over = r"/\sqrt{d_k}" if divided else ""
        slopes = {"q": f"k_{{j,l}}{over}", "k": f"q_{{i,l}}{over}"}
    if divided:
        values["d"] = torch.tensor(float(attention.score_width or attention.d_head))
    if (bias := f"{scope}.position_bias") in run.trace and attention.score_cap is None:
        sources["b"], values["b"] = bias, run[bias]
        symbols, numbers = symbols + "+b_{<i>,<j>}", numbers + "+<b>"

    def scored(dot: Tensor, d: Tensor | None = None, b: Tensor | float = 0.0) -> Tensor:
        return (dot if d is None else dot / d.double().sqrt()) + b

    return Computation(symbols, numbers, scored, values, {"dot": dot}, sources, slopes | {"b": "1"})


def masked_scores(run: Pass, scope: str) -> Computation:
    """The scores where a query may attend; elsewhere minus infinity, or -1e20, beside which a score vanishes."""
    source = f"{scope}.scores"
    allowed, score = run.may_attend(scope)
    allowed = torch.tensor(True) if allowed is None else allowed
    shown = r"-\infty" if score == HIDDEN else r"-10^{20}"

    def hidden(x: Tensor, allowed: Tensor) -> Tensor:
        return torch.where(allowed, x, torch.tensor(score).double())  # as float32 has it

    return Computation(
        r"S_{<i>,<j>}\quad(M_{<i>,<j>}=1)",
        "<x>",
        hidden,
        {"x": run[source], "allowed": allowed},
        sources={"S": source},
        slopes={"S": "M_{i,j}"},
        where=allowed,
        otherwise=(rf"{shown}\quad(M_{{<i>,<j>}}=0)", shown),
    )


def weights(run: Pass, scope: str) -> Computation:
    """Softmax over the keys; 0 where every key is hidden."""
    return softmax(run, f"{scope}.masked_scores", "S'")


def softmax(run: Pass, source: str, letter: str) -> Computation:
    """Softmax over the last axis of recorded scores, by their letter in the formula; 0 where all are minus infinity."""
    s = run[source]
    top = s.amax(-1, keepdim=True)
    top = torch.where(top.isfinite(), top, 0.0)
    total = added_up(torch.exp(s - top))

    def share(s: Tensor, top: Tensor, total: Tensor) -> Tensor:
        return torch.where(total > 0, torch.exp(s - top) / total, 0.0)

    each, any_of = rf"{letter}_{{<i>,<j>}}", rf"{letter}_{{<i>,k}}"
    return Computation(
        rf"\frac{{e^{{{each}-m}}}}{{\sum_k e^{{{any_of}-m}}}},\quad m=\max_k {any_of}",
        r"\frac{e^{<s>-<top>}}{<total>}",
        share,
        {"s": s, "top": top},
        {"total": total},
        {letter: source},
        {letter: r"p_{i,j}\left([j=k]-p_{i,k}\right),\quad p=\mathrm{softmax}"},
        where=total.whole > 0,
        otherwise=(rf"0\quad(\forall k:\,{any_of}=-\infty)", "0"),
    )


def heads(run: Pass, scope: str) -> Computation:
    """The values, mixed by the weights."""
    sources = {"A": f"{scope}.weights", "v": f"{scope}.value"}
    shares, kept = (run[name] for name in sources.values())
    mixed = matrix_product(shares, _for_each_head(run.module(scope), kept))
    slopes = {"A": "v_{k,j}", "v": "A_{i,k}"}
    return Computation(r"\sum_k A_{<i>,k}\,v_{k,<j>}", "<dot>", plus, {}, {"dot": mixed}, sources, slopes)


def joined_output(run: Pass, scope: str) -> Computation:
    """The heads side by side, projected."""
    source = f"{scope}.heads"
    joined = run[source].transpose(1, 2).flatten(2)  # (batch, query_pos, head * d_head)
    proj = run.module(scope).output_proj
    if proj is None:
        return passed_on(joined, "z", source)
    return linear(joined, proj, (r"z_{<i>}", "W^O", "b^O"), {"z": source})
