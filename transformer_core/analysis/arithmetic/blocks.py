"""The arithmetic of the rest of a block: its input, normalisation, feed-forward, and the residual sum.

Ba et al. 2016, eq. 4; Zhang and Sennrich 2019, eq. 4; Vaswani et al. 2017, eq. 2; Hendrycks and Gimpel 2016;
Shazeer 2020, eq. 6.
"""

import math

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic.attention import linear
from transformer_core.analysis.arithmetic.computation import Computation, added_up
from transformer_core.analysis.arithmetic.embeddings import same, summed
from transformer_core.analysis.arithmetic.forward_pass import Pass
from transformer_core.layers.feed_forward import ACTIVATIONS
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
    return Computation(
        rf"\frac{{1}}{{{inner}}}", rf"\frac{{1}}{{{filled}}}", inverse, values, {"sum": squares}, sources
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
        )
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
    return Computation(r"g_{<i>,<j>}\cdot u_{<i>,<j>}", r"<g>\cdot<u>", lambda g, u: g * u, values, sources=sources)


def gate(run: Pass, scope: str) -> Computation:
    """max(0, x), x Phi(x), or the approximation of that with tanh; or x / (1 + exp(-x))."""
    source = f"{scope}.pre_activation"
    x, kind = run[source], run.config.activation
    sources = {"a": source}
    if kind == "relu":
        return Computation(r"\max(0,\,a_{<i>,<j>})", r"\max(0,\,<x>)", lambda x: x * (x > 0), {"x": x}, sources=sources)
    if kind == "gelu":
        phi = (1 + torch.erf(x / math.sqrt(2))) / 2
        values = {"x": x, "phi": phi}
        symbols, numbers = r"a\,\Phi(a),\quad a=a_{<i>,<j>}", r"<x>\cdot\Phi(<x>)=<x>\cdot<phi>"
        return Computation(symbols, numbers, lambda x, phi: x * phi, values, sources=sources)
    if kind == "silu":
        symbols, numbers = r"\frac{a}{1+e^{-a}},\quad a=a_{<i>,<j>}", r"\frac{<x>}{1+e^{-<x>}}"
        return Computation(symbols, numbers, lambda x: x / (1 + torch.exp(-x)), {"x": x}, sources=sources)
    cubic = r"\tfrac12\cdot {0}\left(1+\tanh\left(\sqrt{{2/\pi}}\left({0}+0.044715\cdot {0}^3\right)\right)\right)"
    return Computation(
        cubic.format("a") + r",\quad a=a_{<i>,<j>}",
        cubic.format("<x>"),
        lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        {"x": x},
        sources=sources,
    )


def feed_forward_output(run: Pass, scope: str) -> Computation:
    """The activations times W_2, plus b_2."""
    source = f"{scope}.activation"
    return linear(run[source], run.module(scope).outer_proj, (r"h_{<i>}", "W^{(2)}", "b^{(2)}"), {"h": source})


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
    return Computation(r"x_{<i>,<j>}", "<x>", same, {"x": run[source]}, sources={"x": source})
