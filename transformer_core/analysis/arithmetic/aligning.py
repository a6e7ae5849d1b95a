"""The arithmetic around recurrent cells: what the encoder says, the alignment, the context and the readout.

Bahdanau et al. 2015, section 3.1 and appendix A; Luong et al. 2015, section 3.1. Read next: changing.py.
"""

from dataclasses import replace

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic.attending import linear, plus
from transformer_core.analysis.arithmetic.beginning import same
from transformer_core.analysis.arithmetic.flow import Pass
from transformer_core.analysis.arithmetic.recurring import hidden_before, real_positions
from transformer_core.analysis.arithmetic.step import Step, Sum, matrix_product


def _directions(run: Pass) -> tuple[str, ...]:
    names = ("encoder.forward.hidden", "encoder.backward.hidden")
    return names if names[0] in run.trace else ("encoder.hidden",)


def _side_by_side(run: Pass, states: list[Tensor], rows: tuple[str, str]) -> Step:
    """Return the states of both directions, of these rows, as one vector, or of the one direction there is."""
    names = _directions(run)
    whole = torch.cat(states, -1)
    width = states[0].shape[-1]
    letters = (r"\overrightarrow{h}", r"\overleftarrow{h}") if len(names) > 1 else ("h",)
    return Step(
        rf"{letters[0]}_{{{rows[0]},<j>}}",
        "<x>",
        same,
        {"x": whole},
        sources=dict(zip(letters, names, strict=True)),
        where=torch.arange(whole.shape[-1], device=whole.device) < width,
        otherwise=(rf"{letters[-1]}_{{{rows[-1]},<j>-{width}}}", "<x>"),
    )


def annotations(run: Pass, scope: str) -> Step:
    """Both directions side by side; 0 at padding."""
    real = real_positions(run, scope)
    return _side_by_side(run, [run[name] * real for name in _directions(run)], ("<i>", "<i>"))


def summary(run: Pass, scope: str) -> Step:
    """The last state of each direction: the backward one ends at position 0."""
    names = _directions(run)
    ends = [run[name][:, 0 if "backward" in name else -1] for name in names]
    return _side_by_side(run, ends, (f"{run[names[0]].shape[1] - 1}", "0"))


def _tanh_of(x: Tensor, row: str, name: str, run: Pass, sources: dict[str, str]) -> Step:
    mapped = linear(x, run.module(name), (row, "W", "b"), sources)
    return replace(
        mapped,
        symbols=rf"\tanh\left({mapped.symbols}\right)",
        numbers=rf"\tanh\left({mapped.numbers}\right)",
        function=lambda **parts: torch.tanh(mapped.function(**parts)),
    )


def start(run: Pass, scope: str) -> Step:
    """tanh(W summary + b)."""
    return _tanh_of(run["encoder.summary"], "u", "decoder.start_proj", run, {"u": "encoder.summary"})


def readout(run: Pass, scope: str) -> Step:
    """tanh(W [s; c; e] + b)."""
    sources = {"h": "decoder.hidden", "a": "decoder.context", "e": "decoder.scaled_embedding"}
    joined = torch.cat([run[name] for name in sources.values()], -1)
    return _tanh_of(joined, r"[h_{<i>};a_{<i>};e_{<i>}]", "decoder.readout_proj", run, sources)


def scores(run: Pass, scope: str) -> Step:
    """v . tanh(q + k), or q . k / sqrt(d_hidden), where q = W s + b of the state before and k = U h."""
    alignment = run.module(scope)
    proj = alignment.query_proj
    sources = {"s": "decoder.start", "h": "decoder.hidden", "m": "encoder.annotations"}
    q = hidden_before(run, "decoder") @ proj.weight.double().mT + proj.bias.double()  # (batch, target_pos, d_hidden)
    k = run["encoder.annotations"] @ alignment.key_proj.weight.double().mT  # (batch, source_pos, d_hidden)
    q, k = q[:, None], k[:, None]  # (batch, 1, pos, d_hidden)
    where = r",\quad q_{<i>}=h_{<i>-1}W^Q+b^Q,\quad k_{<j>}=m_{<j>}W^K"
    if alignment.additive_scores is None:
        d = torch.tensor(float(q.shape[-1]))
        return Step(
            rf"\frac{{q_{{<i>}}\cdot k_{{<j>}}}}{{\sqrt{{d}}}}{where}",
            r"\frac{<dot>}{\sqrt{<d>}}",
            lambda dot, d: dot / d.double().sqrt(),
            {"d": d},
            {"dot": matrix_product(q, k.mT)},
            sources,
        )
    features = torch.tanh(q[:, :, :, None] + k[:, :, None])  # (batch, 1, target_pos, source_pos, d_hidden)
    v = alignment.additive_scores.weight.double()[0]  # (d_hidden,)
    total = Sum(v, features, (v * features).sum(-1))
    return Step(rf"v\cdot\tanh(q_{{<i>}}+k_{{<j>}}){where}", "<dot>", plus, {}, {"dot": total}, sources)


def context(run: Pass, scope: str) -> Step:
    """The annotations, mixed by the weights; without attention the summary."""
    if "decoder.alignment.weights" not in run.trace:
        source = "encoder.summary"
        return Step(r"u_{<j>}", "<x>", same, {"x": run[source][:, None]}, sources={"u": source})
    sources = {"A": "decoder.alignment.weights", "m": "encoder.annotations"}
    mixed = matrix_product(run[sources["A"]][:, 0], run[sources["m"]])
    return Step(r"\sum_k A_{<i>,k}\,m_{k,<j>}", "<dot>", plus, {}, {"dot": mixed}, sources)
