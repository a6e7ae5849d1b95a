"""The arithmetic of the end: memory, sentence vectors, and scores of words and classes.

Vaswani et al. 2017, section 3.4; Devlin et al. 2019 and their code; Reimers and Gurevych 2019.
"""

import math
from dataclasses import replace

import torch

from transformer_core.analysis.arithmetic.attention import linear
from transformer_core.analysis.arithmetic.computation import Computation, Sum, matrix_product
from transformer_core.analysis.arithmetic.embeddings import passed_on
from transformer_core.analysis.arithmetic.forward_pass import Pass
from transformer_core.analysis.arithmetic.recurrent import real_positions
from transformer_core.models import Bert, TokenClassifier
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq


def memory(run: Pass, scope: str) -> Computation:
    """What leaves the encoder."""
    source = run.wiring("encoder").leaving("encoder")
    return passed_on(run[source], "x", source)


def cls_embedding(run: Pass, scope: str) -> Computation:
    """The stream's vector at position 0."""
    source = run.wiring("encoder").leaving("encoder")
    return passed_on(run[source][:, 0], "x", source, "0,<j>")


def mean_embedding(run: Pass, scope: str) -> Computation:
    """The mean over what is not padding."""
    source = run.wiring("encoder").leaving("encoder")
    x = run[source]
    real = (run.ids["encoder"] != run.config.padding).double()  # (batch, pos)
    parts = (x * real[..., None]).mT  # (batch, d_model, pos)
    n = real.sum(-1, keepdim=True).clamp(min=1.0)
    return Computation(
        r"\frac{\sum_i m_i\,x_{i,<j>}}{\sum_i m_i}",
        r"\frac{<sum>}{<n>}",
        lambda sum, n: sum / n,
        {"n": n},
        {"sum": Sum(parts, None, parts.sum(-1))},
        {"x": source},
        {"x": r"m_i/\sum_i m_i"},
    )


POOLED = {
    "tanh": (
        r"\tanh\left(s\cdot W_{:,<j>}+b_{<j>}\right)",
        r"\tanh\left(<dot>+<b>\right)",
        lambda dot, b: torch.tanh(dot + b),
        r"(1-\tanh^2u)\,W_{k,j}",
    ),
    "relu": (
        r"\max(0,\,s\cdot W_{:,<j>}+b_{<j>})",
        r"\max(0,\,<dot>+<b>)",
        lambda dot, b: torch.relu(dot + b),
        "[u>0]\\,W_{k,j}",
    ),
    "gelu": (
        r"u\,\Phi(u),\quad u=s\cdot W_{:,<j>}+b_{<j>}",
        r"\left(<dot>+<b>\right)\cdot<phi>",
        lambda dot, b, phi: (dot + b) * phi,
        r"\left(\Phi(u)+u\,\varphi(u)\right)W_{k,j}",
    ),
}


def pooled(run: Pass, scope: str) -> Computation:
    """The hyperbolic tangent, what is above 0, or the GELU, of a linear map of the sentence's vector."""
    if run.config.pooler_norm and not isinstance(run.model, Bert):
        source = f"{scope}.pooler_norm.normalized".removeprefix(".")
        return passed_on(run[source][:, 0], "y", source, "0,<j>")
    proj = run.module("pooler_proj")
    source = "cls_embedding" if isinstance(run.model, Bert) else f"{run.config.pooling}_embedding"
    kind = "tanh" if isinstance(run.model, Bert) else run.config.pooler
    symbols, numbers, function, slope = POOLED[kind]
    dot = matrix_product(run[source], proj.weight.cpu().double().mT)
    values = {"b": torch.zeros(1).double() if proj.bias is None else proj.bias.cpu().double()}
    if kind == "gelu":
        values["phi"] = (1 + torch.erf((dot.whole + values["b"]) / math.sqrt(2))) / 2
    return Computation(symbols, numbers, function, values, {"dot": dot}, {"s": source}, {"s": slope})


def transformed(run: Pass, scope: str) -> Computation:
    """What the normalisation of the masked-word head made."""
    source = f"{scope}.norm.normalized"
    return passed_on(run[source], "y", source)


def logits(run: Pass, scope: str) -> Computation:
    """The stream, or a hidden state, times the matrix of words."""
    if isinstance(run.model, RecurrentLm):
        source = "recurrent.hidden"
        hidden = run[source] * real_positions(run, "recurrent")
        return linear(hidden, run.model.output, (r"h_{<i>}", "V", "b"), {"h": source})
    if isinstance(run.model, Bert):
        source, proj = "mlm_head.transformed", run.model.mlm_head.output.proj
    else:
        readout = isinstance(run.model, Seq2Seq)
        source = "decoder.readout" if readout else run.wiring("decoder").leaving("decoder")
        proj = run.module("output").proj
    x, row = run[source], r"x_{<i>}"
    if getattr(run.config, "scale_output", False) and not isinstance(run.model, Bert):
        x, row = x / math.sqrt(x.shape[-1]), r"\frac{x_{<i>}}{\sqrt{d_{model}}}"
    found = linear(x, proj, (row, "E^\\top", "b"), {"x": source})
    if r"\frac" in row:
        found = replace(found, slopes={"x": r"E^\top_{k,j}/\sqrt{d_{model}}"})
    cap = getattr(run.config, "logit_cap", None)
    if cap is None:
        return found
    return replace(
        found,
        symbols=rf"c\tanh\left(\frac{{{found.symbols}}}{{c}}\right)",
        numbers=rf"<cap>\cdot\tanh\left(\frac{{{found.numbers}}}{{<cap>}}\right)",
        function=lambda cap, **parts: cap * torch.tanh(found.function(**parts) / cap),
        values={**found.values, "cap": torch.tensor(cap).double()},
        slopes={letter: rf"\left(1-(\ell_{{i,j}}/c)^2\right){slope}" for letter, slope in found.slopes.items()},
    )


def class_logits(run: Pass, scope: str) -> Computation:
    """The sentence's vector times the matrix of classes."""
    sentence = "pooled" if "pooled" in run.trace else f"{run.config.pooling}_embedding"
    proj = run.module(scope).class_proj
    return linear(run[sentence], proj, ("s", "W", "b"), {"s": sentence})


def each_token(run: Pass, scope: str) -> Computation:
    """Each token's vector times the matrix of labels, or of an answer's bounds."""
    source = run.wiring("encoder").leaving("encoder")
    proj = run.model.class_proj if isinstance(run.model, TokenClassifier) else run.module("bound_proj")
    return linear(run[source], proj, (r"x_{<i>}", "W", "b"), {"x": source})
