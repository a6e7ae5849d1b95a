"""The arithmetic of the rest of a block: its input, normalisation, feed-forward, mixtures, and the residual sum.

Ba et al. 2016, eq. 4; Zhang and Sennrich 2019, eq. 4; Vaswani et al. 2017, eq. 2; Hendrycks and Gimpel 2016;
Shazeer 2020, eq. 6; Shazeer et al. 2017, eq. 1.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic.attention import linear, plus, softmax
from transformer_core.analysis.arithmetic.computation import Computation, Sum, added_up, matrix_product
from transformer_core.analysis.arithmetic.embeddings import passed_on, summed
from transformer_core.analysis.arithmetic.forward_pass import Pass
from transformer_core.layers.feed_forward import ACTIVATIONS, FeedForward, MixtureOfExperts
from transformer_core.layers.normalization import RmsNorm
from transformer_core.models.classifier import POOLERS


def _normalised_stream(run: Pass, scope: str) -> tuple[Tensor, dict[str, str]]:
    """Return what a normalisation reads, and which recorded tensor that is."""
    if scope == "mlm_head.norm":
        source, proj = run.wiring("encoder").leaving("encoder"), run.module("mlm_head").transform_proj
        inside = linear(run[source], proj, ("", "", ""), {}).whole((*run[source].shape[:2], len(proj.weight)))
        return ACTIVATIONS[run.config.head_activation](inside), {"u": source}
    if scope == "pooler_norm":
        source, proj = f"{run.config.pooling}_embedding", run.module("pooler_proj")
        inside = linear(run[source], proj, ("", "", ""), {}).whole(tuple(run[source].shape))
        return POOLERS[run.config.pooler](inside)[:, None], {"s": source}
    source = run.wiring(scope).normalises(scope)
    return run[source], {"x": source}


def _directly(sources: dict[str, str], slope: str) -> dict[str, str]:
    """Return a slope with respect to the stream; not to what a head maps and bends first, which nothing recorded."""
    return {letter: slope for letter in sources if letter == "x"}


def projected_embedding(run: Pass, scope: str) -> Computation:
    """The summed embedding, normalised where the model does so, times the matrix to the stream's width."""
    source = f"{scope}.{'norm.normalized' if run.config.embedding_norm else 'residual'}"
    return linear(run[source], run.module(scope).stream_proj, (r"e_{<i>}", "W", "b"), {"e": source})


def mean(run: Pass, scope: str) -> Computation:
    """The mean over the dimensions."""
    x, sources = _normalised_stream(run, scope)
    d = torch.tensor(float(x.shape[-1]))
    return Computation(
        r"\tfrac1d\sum_k x_{<i>,k}",
        r"\frac{<sum>}{<d>}",
        lambda sum, d: sum / d,
        {"d": d},
        {"sum": added_up(x)},
        sources,
        _directly(sources, r"\tfrac1d"),
    )


def inverse_deviation(run: Pass, scope: str) -> Computation:
    """One over the deviation, with eps inside the root or, where the deviation is unbiased, outside."""
    x, sources = _normalised_stream(run, scope)
    sources = sources | {r"\mu": f"{scope}.mean"}
    unbiased = run.config.norm == "unbiased"
    numbers = {"n": float(x.shape[-1] - unbiased), "eps": run.config.norm_eps}
    squares = added_up((x - run[f"{scope}.mean"]).square())
    squared = r"\sum_k(x_{<i>,k}-\mu_{<i>})^2"

    def inverse(sum: Tensor, n: Tensor, eps: Tensor) -> Tensor:
        variance = sum / n
        return 1 / (variance.sqrt() + eps) if unbiased else 1 / (variance + eps).sqrt()

    inner = rf"\sqrt{{\tfrac1{{d-1}}{squared}}}+\epsilon" if unbiased else rf"\sqrt{{\tfrac1d{squared}+\epsilon}}"
    filled = r"\sqrt{\frac{<sum>}{<n>}}+<eps>" if unbiased else r"\sqrt{\frac{<sum>}{<n>}+<eps>}"
    values = {name: torch.tensor(number, dtype=torch.float64) for name, number in numbers.items()}
    centred = r"\left(x_{i,k}-\mu_i\right)"
    slope = rf"-\frac{{r_i^2}}{{(d-1)\,\sigma_i}}{centred}" if unbiased else rf"-\frac{{r_i^3}}{{d}}{centred}"
    slopes = _directly(sources, slope) | {r"\mu": r"0,\ \text{since}\ \sum_k(x_{i,k}-\mu_i)=0"}
    return Computation(
        rf"\frac{{1}}{{{inner}}}", rf"\frac{{1}}{{{filled}}}", inverse, values, {"sum": squares}, sources, slopes
    )


def inverse_root_mean_square(run: Pass, scope: str) -> Computation:
    """One over the root of the mean of squares."""
    x, sources = _normalised_stream(run, scope)
    numbers = {"n": float(x.shape[-1]), "eps": run.config.norm_eps}
    return Computation(
        r"\frac{1}{\sqrt{\tfrac1d\sum_k x_{<i>,k}^2+\epsilon}}",
        r"\frac{1}{\sqrt{\frac{<sum>}{<n>}+<eps>}}",
        lambda sum, n, eps: 1 / (sum / n + eps).sqrt(),
        {name: torch.tensor(number, dtype=torch.float64) for name, number in numbers.items()},
        {"sum": added_up(x.square())},
        sources,
        _directly(sources, r"-\frac{r_i^3}{d}\,x_{i,k}"),
    )


def normalized(run: Pass, scope: str) -> Computation:
    """The gain times the centred stream over its deviation, plus the bias; or the stream over its root mean square."""
    norm = run.module(scope)
    x, sources = _normalised_stream(run, scope)
    if isinstance(norm, RmsNorm):
        inverse = f"{scope}.inverse_root_mean_square"
        return Computation(
            r"g_{<j>}\cdot x_{<i>,<j>}\cdot r_{<i>}",
            r"<g>\cdot<x>\cdot<r>",
            lambda g, x, r: g * x * r,
            {"g": norm.weight.cpu().double(), "x": x, "r": run[inverse]},
            sources=sources | {"r": inverse},
            slopes=_directly(sources, r"g_j\,r_i") | {"r": r"g_j\,x_{i,j}"},
        )
    slopes = _directly(sources, r"g_j\,r_i") | {r"\mu": r"-g_j\,r_i", "r": r"g_j\left(x_{i,j}-\mu_i\right)"}
    sources = sources | {r"\mu": f"{scope}.mean", "r": f"{scope}.inverse_deviation"}
    values = {
        "g": norm.weight.cpu().double(),
        "x": x,
        "mu": run[f"{scope}.mean"],
        "deviation": 1 / run[f"{scope}.inverse_deviation"],
    }
    symbols, numbers = ("", "") if norm.bias is None else ("+b_{<j>}", "+<b>")
    if norm.bias is not None:
        values["b"] = norm.bias.cpu().double()

    def normal(g: Tensor, x: Tensor, mu: Tensor, deviation: Tensor, b: Tensor | float = 0.0) -> Tensor:
        return g * (x - mu) / deviation + b

    root = r"\sigma_{<i>}+\epsilon" if run.config.norm == "unbiased" else r"\sqrt{\sigma_{<i>}^2+\epsilon}"
    return Computation(
        rf"g_{{<j>}}\cdot\frac{{x_{{<i>,<j>}}-\mu_{{<i>}}}}{{{root}}}" + symbols,
        r"<g>\cdot\frac{<x>-<mu>}{<deviation>}" + numbers,
        normal,
        values,
        sources=sources,
        slopes=slopes,
    )


def pre_activation(run: Pass, scope: str) -> Computation:
    """x W_1 + b_1; of a gate x W_g."""
    source, layer = run.wiring(scope).into(scope), run.module(scope)
    if layer.gate_proj is not None:
        return linear(run[source], layer.gate_proj, (r"x_{<i>}", "W^{(g)}", "b^{(g)}"), {"x": source})
    return linear(run[source], layer.inner_proj, (r"x_{<i>}", "W^{(1)}", "b^{(1)}"), {"x": source})


def up(run: Pass, scope: str) -> Computation:
    """x W_1, which a gate lets through."""
    source = run.wiring(scope).into(scope)
    return linear(run[source], run.module(scope).inner_proj, (r"x_{<i>}", "W^{(1)}", "b^{(1)}"), {"x": source})


def activation(run: Pass, scope: str) -> Computation:
    """The activation function of what came before it; with a gate, the gate times what it lets through."""
    if f"{scope}.gate" not in run.trace:
        return gate(run, scope)
    sources = {"g": f"{scope}.gate", "u": f"{scope}.up"}
    values = {letter: run[source] for letter, source in sources.items()}
    return Computation(
        r"g_{<i>,<j>}\cdot u_{<i>,<j>}",
        r"<g>\cdot<u>",
        lambda g, u: g * u,
        values,
        sources=sources,
        slopes={"g": "u_{i,j}", "u": "g_{i,j}"},
    )


BENT = {  # the derivatives of the activation functions
    "relu": r"[a_{i,j}>0]",
    "gelu": r"\Phi(a)+a\,\varphi(a),\quad\varphi(a)=e^{-a^2/2}/\sqrt{2\pi}",
    "silu": r"\sigma(a)\left(1+a\,(1-\sigma(a))\right)",
    "gelu_tanh": r"\tfrac12(1+\tanh t)+\tfrac a2(1-\tanh^2t)\,t',\quad t=\sqrt{2/\pi}\,(a+0.044715\,a^3)",
}


def gate(run: Pass, scope: str) -> Computation:
    """max(0, x), x Phi(x), or the approximation of that with tanh; or x / (1 + exp(-x))."""
    source = f"{scope}.pre_activation"
    x, kind = run[source], run.config.activation
    given: dict[str, Any] = {"sources": {"a": source}, "slopes": {"a": BENT[kind]}}
    if kind == "relu":
        return Computation(r"\max(0,\,a_{<i>,<j>})", r"\max(0,\,<x>)", lambda x: x * (x > 0), {"x": x}, **given)
    if kind == "gelu":
        phi = (1 + torch.erf(x / math.sqrt(2))) / 2
        values = {"x": x, "phi": phi}
        symbols, numbers = r"a\,\Phi(a),\quad a=a_{<i>,<j>}", r"<x>\cdot\Phi(<x>)=<x>\cdot<phi>"
        return Computation(symbols, numbers, lambda x, phi: x * phi, values, **given)
    if kind == "silu":
        symbols, numbers = r"\frac{a}{1+e^{-a}},\quad a=a_{<i>,<j>}", r"\frac{<x>}{1+e^{-<x>}}"
        return Computation(symbols, numbers, lambda x: x / (1 + torch.exp(-x)), {"x": x}, **given)
    cubic = r"\tfrac12\cdot {0}\left(1+\tanh\left(\sqrt{{2/\pi}}\left({0}+0.044715\cdot {0}^3\right)\right)\right)"
    return Computation(
        cubic.format("a") + r",\quad a=a_{<i>,<j>}",
        cubic.format("<x>"),
        lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        {"x": x},
        **given,
    )


def feed_forward_output(run: Pass, scope: str) -> Computation:
    """The activations times W_2, plus b_2; of a mixture the experts' outputs by their weights, and the shared one's."""
    if isinstance(run.module(scope), MixtureOfExperts):
        return _mixture_output(run, scope)
    source = f"{scope}.activation"
    return linear(run[source], run.module(scope).outer_proj, (r"h_{<i>}", "W^{(2)}", "b^{(2)}"), {"h": source})


def _mixture_output(run: Pass, scope: str) -> Computation:
    sources = {"g": f"{scope}.expert_weights", "E": f"{scope}.expert_outputs"}
    g, outputs = (run[name] for name in sources.values())  # (batch, pos, expert), (batch, expert, pos, d_model)
    whole = torch.einsum("bpe,bepd->bpd", g, outputs)
    mixed = Sum(g.unsqueeze(-2), outputs.permute(0, 2, 3, 1), whole)
    symbols, numbers, values = r"\sum_e g_{<i>,e}\,E^{(e)}_{<i>,<j>}", "<dot>", {}
    if (shared := f"{scope}.shared_output") in run.trace:
        symbols, numbers, values, sources["s"] = rf"{symbols}+s_{{<i>,<j>}}", "<dot>+<b>", {"b": run[shared]}, shared
    slopes = {"g": r"E^{(e)}_{i,j}", "E": "g_{i,e}", "s": "1"}
    return Computation(symbols, numbers, plus, values, {"dot": mixed}, sources, slopes)


def router_scores(run: Pass, scope: str) -> Computation:
    """x W_r."""
    source = run.wiring(scope).into(scope)
    return linear(run[source], run.module(scope).router, (r"x_{<i>}", "W^{(r)}", ""), {"x": source})


def router_probabilities(run: Pass, scope: str) -> Computation:
    """Softmax over the experts."""
    return softmax(run, f"{scope}.router_scores", "r")


def expert_weights(run: Pass, scope: str) -> Computation:
    """The largest probabilities, over their sum where they shall sum to 1; 0 for all others."""
    source, mixture = f"{scope}.router_probabilities", run.module(scope)
    p, top = run[source], run.trace[source].cpu().topk(mixture.n_active, dim=-1).indices
    chosen = torch.zeros_like(p, dtype=torch.bool).scatter(-1, top, True)
    symbols, numbers, sums = r"p_{<i>,<j>}", "<p>", {}
    if mixture.sums_to_one:
        symbols, numbers = rf"\frac{{{symbols}}}{{\sum_{{e\in T_{{<i>}}}}p_{{<i>,e}}}}", r"\frac{<p>}{<total>}"
        sums["total"] = added_up(p.gather(-1, top))

    def kept(p: Tensor, chosen: Tensor, total: Tensor | float = 1.0) -> Tensor:
        return torch.where(chosen.bool(), p / total, 0.0)

    otherwise = (r"0\quad(<j>\notin T_{<i>})", "0")
    slope = r"\tfrac{1}{\sum_T p}([e=f]-g_{i,e})" if sums else "[e=f]"
    return Computation(
        symbols,
        numbers,
        kept,
        {"p": p, "chosen": chosen},
        sums,
        {"p": source},
        {"p": rf"{slope}\quad(e,f\in T_i)"},
        where=chosen,
        otherwise=otherwise,
    )


def _inside(layer: FeedForward, x: Tensor) -> Tensor:
    """Return the inside of a feed-forward layer after its activation, which nothing recorded: (..., d_ff)."""
    projections = (layer.inner_proj,) if layer.gate_proj is None else (layer.gate_proj, layer.inner_proj)
    first, *rest = (
        plus(x @ proj.weight.cpu().double().mT, 0.0 if proj.bias is None else proj.bias.cpu().double())
        for proj in projections
    )
    return math.prod(rest, start=ACTIVATIONS[layer.activation](first))


def expert_outputs(run: Pass, scope: str) -> Computation:
    """Each expert's inside times its W_2, plus b_2, where it was chosen."""
    sources = {"x": run.wiring(scope).into(scope), "g": f"{scope}.expert_weights"}
    x, g = (run[name] for name in sources.values())
    experts = list(run.module(scope).experts)
    inside = torch.stack([_inside(expert, x) for expert in experts], dim=1)  # (batch, expert, pos, d_ff)
    second = torch.stack([expert.outer_proj.weight.cpu().double().mT for expert in experts])  # (expert, d_ff, d_model)
    chosen = g.mT[..., None] != 0  # (batch, expert, pos, 1)
    symbols, numbers, values = r"h^{(<h>)}_{<i>}\cdot W^{(2,<h>)}_{:,<j>}", "<dot>", {"chosen": chosen}
    if experts[0].outer_proj.bias is not None:
        symbols, numbers = rf"{symbols}+b^{{(2,<h>)}}_{{<j>}}", "<dot>+<b>"
        values["b"] = torch.stack([expert.outer_proj.bias.cpu().double() for expert in experts])[:, None]

    def made(dot: Tensor, chosen: Tensor, b: Tensor | float = 0.0) -> Tensor:
        return torch.where(chosen.bool(), dot + b, 0.0)

    sums, otherwise = {"dot": matrix_product(inside, second)}, (r"0\quad(g_{<i>,<h>}=0)", "0")
    return Computation(symbols, numbers, made, values, sums, sources, where=chosen, otherwise=otherwise)


def shared_gate(run: Pass, scope: str) -> Computation:
    """The sigmoid of x w."""
    source = run.wiring(scope).into(scope)
    dot = matrix_product(run[source], run.module(scope).shared_gate.weight.cpu().double().mT)
    return Computation(
        r"\sigma(x_{<i>}\cdot w)",
        r"\sigma(<dot>)",
        lambda dot: torch.sigmoid(dot),
        sums={"dot": dot},
        sources={"x": source},
        slopes={"x": r"\gamma_i(1-\gamma_i)\,w_k"},
    )


def shared_output(run: Pass, scope: str) -> Computation:
    """The shared expert's inside times its W_2, plus b_2, times its gate where it has one."""
    sources, shared = {"x": run.wiring(scope).into(scope)}, run.module(scope).shared
    made = linear(_inside(shared, run[sources["x"]]), shared.outer_proj, (r"h_{<i>}", "W^{(2)}", "b^{(2)}"), sources)
    made = replace(made, slopes={})  # of many steps at once, which nothing recorded
    if (gate := f"{scope}.shared_gate") not in run.trace:
        return made
    return Computation(
        rf"\gamma_{{<i>}}\cdot({made.symbols})",
        rf"<gate>\cdot({made.numbers})",
        lambda gate, **rest: gate * made.function(**rest),
        {**made.values, "gate": run[gate]},
        made.sums,
        sources | {r"\gamma": gate},
    )


def residual_sum(run: Pass, scope: str) -> Computation:
    """The stream plus what the sublayer adds; without residual connections the sublayer's output alone."""
    wiring = run.wiring(scope)
    sources = {"x": wiring.onto(scope), "o": wiring.adds(scope)}
    if not run.config.residual:
        del sources["x"]
    return summed(run, sources)


def layer_residual(run: Pass, scope: str) -> Computation:
    """The stream as the last sublayer of a layer left it."""
    source = run.wiring(scope).after(f"{scope}.feed_forward")
    return passed_on(run[source], "x", source)
